"""People who do research expect these: data sets in run(), callbacks, reports as text, and other tools."""

import json
import sys
import traceback
import types

import numpy as np
import pytest

import olrank
from olrank import callbacks
from conftest import refused

CONFIG = {
    "data": {"source": "synth:small?queries=20"},
    "protocol": {"rounds": 4, "eval_every": 2, "seeds": [1, 2]},
    "clicks": {"models": ["navigational"]},
    "ranker": [{"kind": "pairrank"}, {"kind": "pdgd", "network": "linear"}],
}


@pytest.fixture
def parts():
    return {part: olrank.synthetic("small", part=part, queries=20) for part in ("train", "test", "vali")}


def named(data, names):
    return olrank.Dataset(data._engine, tuple(names))


def test_data_sets_are_played(parts, tmp_path):
    out = tmp_path / "out"
    config = CONFIG | {"data": parts, "protocol": CONFIG["protocol"] | {"seeds": [1]}}
    played = olrank.run(config, progress=False, out=out)
    parts["train"].save(tmp_path / "train.txt")
    parts["test"].save(tmp_path / "test.txt")
    by_files = olrank.run(config | {"data": {part: tmp_path / f"{part}.txt" for part in ("train", "test")}}, progress=False)
    assert [one.figures["offline"] for one in played] == [one.figures["offline"] for one in by_files]
    assert [trial.fingerprint for trial in olrank.run(config, progress=False, out=out, resume=True).trials] == [trial.fingerprint for trial in played.trials]
    assert olrank.run(config, progress=False).trials[0].finished  # in a folder that goes with the results
    refused("give one for each part", lambda: olrank.run(CONFIG | {"data": parts["train"]}, progress=False))
    told = []
    tuned = olrank.tune(
        config | {"ranker": [{"kind": "pairrank"}], "sweep": {"lambda": [0.1, 1.0]}},
        progress=False,
        callbacks=[lambda figures, step, trial: told.append(trial)],
    )
    assert len(tuned.winners) == 1 and set(told) == set(tuned.tuning.trials + tuned.test.trials)


def test_models_of_data_sets_with_names_take_columns_by_name(parts, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = [f"col {column}" for column in range(parts["train"].features)]
    turned = named(olrank.Dataset.from_arrays(parts["test"].X[:, ::-1].copy(), parts["test"].y, group=parts["test"].group), names[::-1])
    config = CONFIG | {"data": {"train": named(parts["train"], names), "test": turned}}
    trial = olrank.run(config, progress=False, out=tmp_path / "out").trials[0]
    X = parts["test"].X[:10]
    model = olrank.load_model(trial.folder)
    assert model.feature_names == names and olrank.Ranker.load(trial.folder).feature_names == names
    assert np.array_equal(np.asarray(model.score(pandas.DataFrame(X, columns=names)[names[::-1]], [10])), model.score(X, [10]))
    assert olrank.load_letor(tmp_path / "out.data/train.txt").feature_names == names
    (tmp_path / "out.data/train.txt.names").write_text('["a"]')
    with pytest.raises(olrank.Error, match="train.txt.names: 1 name for the"):
        olrank.run(config | {"data": {part: tmp_path / f"out.data/{part}.txt" for part in ("train", "test")}}, progress=False)


class Listen:
    """Keeps what it is told. Its end may fail."""

    closed = []

    def __init__(self, error=None):
        self.told, self.error = [], error

    def __call__(self, figures, step, trial):
        self.told.append((trial.ranker, trial.seed, step, figures))

    def close(self):
        self.closed.append(self)
        if self.error:
            raise self.error


def test_callbacks_are_told_each_evaluation_and_closed_where_one_raises():
    first, second = Listen(), Listen(LookupError("mine"))
    results = olrank.run(CONFIG, progress=False, callbacks=[first])
    wanted = {(one.trial.ranker, one.trial.seed, one.round): one.offline["ndcg@10"] for one in results}
    assert {(ranker, seed, step): figures["offline.ndcg@10"] for ranker, seed, step, figures in first.told} == wanted
    assert all("online.ndcg@10" in figures for *_, step, figures in first.told if step > 0)
    refused("mine", lambda: olrank.run(CONFIG, progress=False, callbacks=[second, first]), LookupError)
    assert Listen.closed == [first, second, first]


@pytest.mark.parametrize("error", [LookupError, olrank.InvalidArgument])
def test_a_callback_that_raises_shows_where(error, tmp_path):
    def broken(figures, step, trial):
        raise error("mine")

    with pytest.raises(error, match="mine") as raised:
        olrank.run(CONFIG, progress=False, out=tmp_path / "out", callbacks=[broken])
    assert "broken" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert olrank.run(CONFIG, progress=False, out=tmp_path / "out", resume=True).trials[-1].finished


def test_what_is_no_callback_is_refused_before_the_run(tmp_path):
    for wrong in (print, [3], [lambda *told: None, None], [callbacks.TensorBoard], {"a": print}):
        for play in (olrank.run, olrank.tune):
            with pytest.raises(olrank.InvalidArgument, match="callbacks must be a list of functions of figures, step and trial"):
                play(CONFIG, progress=False, out=tmp_path / "out", callbacks=wrong)
    assert not (tmp_path / "out").exists()


def test_reports_as_text(program, tmp_path):
    results = olrank.run(CONFIG, progress=False, out=tmp_path / "out")
    texts = {"latex": results.to_latex(), "csv": olrank.report(results, "csv"), "json": olrank.report(tmp_path / "out")}
    flags = [word for form in texts for word in (f"--{form}", tmp_path / form)]
    program("report", tmp_path / "out", "--quiet", *flags)
    assert {form: (tmp_path / form).read_text() for form in texts} == texts
    assert r"\toprule" in results.to_latex(users=["navigational"])
    again = olrank.run(CONFIG | {"ranker": [{"kind": "pairrank", "name": "other"}]}, progress=False)
    assert "other" in json.dumps(results.compare(again, baseline="pairrank"))
    for wrong, sentence in ((lambda: results.to_latex(baseline="x"), "x"), (lambda: results.to_latex(users=["x"]), "navigational"),
                            (lambda: olrank.report(results, "pdf"), "choose latex, csv or json")):
        refused(sentence, wrong)


def played_with(callback):
    return olrank.run(CONFIG, progress=False, callbacks=[callback])


def test_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # here it is a folder of libraries, which tensorboardX takes for torch
    pytest.importorskip("tensorboardX")
    played_with(callbacks.TensorBoard(tmp_path))
    assert len(list(tmp_path.glob("pairrank/navigational/fold1/seed*/events*"))) == 2


def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no data base
    uri = str(tmp_path / "mlruns")
    results = played_with(callbacks.MLflow(uri))
    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("olrank").experiment_id])
    assert len(runs) == 4 and {run.info.status for run in runs} == {"FINISHED"}
    one = next(run for run in runs if run.data.params == {"ranker": "pairrank", "user": "navigational", "fold": "1", "seed": "2"})
    assert one.data.metrics["offline.ndcg_at_10"] == results.trials[1].summary["last"]["offline"]["ndcg@10"]


def test_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_X_SAVE_REQUIREMENTS", "false")  # LibTorch's folder has no metadata of a package
    played_with(callbacks.WandB(folder=tmp_path))
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 4


def test_a_tool_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    refused("pip install wandb", lambda: callbacks.WandB(folder=tmp_path), olrank.Error)


def test_pyterrier(monkeypatch, parts):
    pandas = pytest.importorskip("pandas")
    try:
        import pyterrier  # noqa: F401
    except ImportError:  # its two names that we use, as its documentation has them
        double = types.ModuleType("pyterrier")
        double.Transformer = object
        double.model = types.SimpleNamespace(
            add_ranks=lambda table: table.assign(rank=table.groupby("qid")["score"].rank(ascending=False, method="first").astype(int) - 1)
        )
        monkeypatch.setitem(sys.modules, "pyterrier", double)
    from olrank.pyterrier import OlrankTransformer

    data = parts["train"]
    model = olrank.fit(data, epochs=2)
    table = pandas.DataFrame({"qid": data.qid, "docno": np.arange(len(data.y)).astype(str), "features": list(data.X)})
    ranked = OlrankTransformer(model).transform(table.sample(frac=1, random_state=1))
    scores = ranked.set_index("docno").loc[table["docno"], "score"].to_numpy()
    assert np.array_equal(scores, model.score(data.X, data.group))
    assert ranked.loc[ranked.groupby("qid")["score"].idxmax(), "rank"].eq(0).all()
    assert len(OlrankTransformer(model).transform(table[:0])) == 0
