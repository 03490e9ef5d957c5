"""Models in ONNX, as models and as what a ranker starts from."""

import pickle
import sys

import numpy as np
import pytest

import olrank
from conftest import refused


def given(features=6, normalise="none", tmp_path=None, **settings):
    """A network as the model file and as ONNX."""
    ranker = olrank.Ranker("olranknet", features=features, width=8, normalise=normalise, **settings)
    draw = np.random.default_rng(1)
    for _ in range(5):
        shown = ranker.rank(draw.random((20, features), dtype=np.float32))
        ranker.learn(shown, draw.integers(0, 2, size=10))
    ranker.save_model(tmp_path / "model.safetensors")
    olrank.export(tmp_path / "model.safetensors", "onnx", tmp_path / "model.onnx")
    return tmp_path / "model.safetensors", tmp_path / "model.onnx"


def play(ranker, queries, first, last):
    lists = []
    for number in range(first, last):
        shown = ranker.rank(queries(number), qid=number % 5)
        ranker.learn(shown, np.arange(10) == number % 3)
        lists.append(shown.docs.tolist())
    return lists


@pytest.fixture
def start(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime computes the scores of ONNX models")
    return given(tmp_path=tmp_path)


def test_a_model_scores_as_the_one_it_was_exported_from(start, queries):
    own, onnx = (olrank.load_model(file) for file in start)
    assert onnx.features == 6 and onnx.feature_names is None
    X = np.concatenate([queries(0), queries(1)])
    assert np.allclose(onnx.score(X, [20, 20]), own.score(X), rtol=1e-9, atol=1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(onnx)).score(X), onnx.score(X))


def test_a_model_that_scales_by_query_gets_one_query_at_a_time(tmp_path, queries):
    pytest.importorskip("onnxruntime", reason="onnxruntime computes the scores of ONNX models")
    own, onnx = (olrank.load_model(file) for file in given(normalise="query-minmax", tmp_path=tmp_path))
    X = np.concatenate([queries(0), 3 * queries(1)])
    assert np.allclose(onnx.score(X, [20, 20]), own.score(X, [20, 20]), rtol=1e-6, atol=1e-6)


def test_a_ranker_starts_from_it_as_from_the_model_file(start, queries, tmp_path):
    own, ranker = (olrank.Ranker(features=6, normalise="none", start_from=file) for file in start)
    assert np.allclose(ranker.score(queries(9)), olrank.load_model(start[1]).score(queries(9)), rtol=1e-5, atol=1e-5)
    for file in start:
        file.unlink()  # a ranker has what it started from
    assert play(ranker, queries, 0, 30) == play(own, queries, 0, 30)
    assert np.allclose(ranker.score(queries(9)), own.score(queries(9)), rtol=1e-4, atol=1e-4)

    ranker.save(tmp_path / "state")
    again, copy = olrank.Ranker.load(tmp_path / "state"), pickle.loads(pickle.dumps(ranker))
    assert again.fingerprint == copy.fingerprint == ranker.fingerprint
    assert play(again, queries, 30, 40) == play(copy, queries, 30, 40) == play(ranker, queries, 30, 40)
    assert again.fingerprint == copy.fingerprint == ranker.fingerprint
    ranker.save(tmp_path / "state")
    ranker.save_model(tmp_path / "learned.safetensors")
    learned, snapshot = olrank.load_model(tmp_path / "learned.safetensors"), olrank.load_model(tmp_path / "state")
    assert np.allclose(learned.score(queries(9), [20]), ranker.score(queries(9)), rtol=1e-4, atol=1e-4)
    assert not np.allclose(snapshot.score(queries(38), [20], qid=[3]), ranker.score(queries(38)), atol=1e-3)  # the memory of query 3


def test_trials_start_from_it_and_resume(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime computes the scores of ONNX models")
    own, onnx = given(features=olrank.synthetic("small", queries=5).features, tmp_path=tmp_path)
    config = {
        "data": {"source": "synth:small?queries=40", "normalise": "none"},
        "protocol": {"rounds": 20, "eval_every": 10, "seeds": [1, 2]},
        "clicks": {"models": ["navigational"]},
        "ranker": [{"name": "own", "kind": "clickgp", "start_from": str(own)}, {"name": "onnx", "kind": "clickgp", "start_from": str(onnx)}],
        "run": {"threads": 2, "device": "cpu"},
    }
    results = olrank.run(config, out=tmp_path / "out", progress=False)
    curves = {(trial.ranker, trial.seed): [line["offline"]["ndcg@10"] for line in trial.curve] for trial in results.trials}
    for seed in (1, 2):
        assert np.allclose(curves["own", seed], curves["onnx", seed], atol=1e-3)
    longer = config | {"protocol": config["protocol"] | {"rounds": 40}}
    resumed = olrank.run(longer, out=tmp_path / "out", progress=False, resume=True)
    whole = olrank.run(longer, out=tmp_path / "whole", progress=False)
    assert [trial.fingerprint for trial in resumed.trials] == [trial.fingerprint for trial in whole.trials]


def test_files_that_serve_no_ranker_are_refused(start, queries, tmp_path):
    own, onnx = start
    with pytest.raises(olrank.InvalidArgument, match="starts from .*model.onnx, which expects other inputs: 6 features normalised by none"):
        olrank.Ranker(features=5, normalise="none", start_from=onnx)
    refused("expects other inputs.* by query-minmax", lambda: olrank.Ranker(features=6, start_from=onnx))
    refused("holds an ONNX model, from which only clickgp starts", lambda: olrank.Ranker("olranknet", features=6, normalise="none", start_from=onnx))
    refused("cannot hold an ONNX model: use the model's own file", lambda: olrank.export(onnx, "safetensors", tmp_path / "other.safetensors"))
    whole = onnx.read_bytes()
    for share in (0.02, 0.5, 0.99):
        (tmp_path / "short.onnx").write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(olrank.DataError, match=r"short.onnx: onnxruntime cannot read this ONNX model: it is damaged, cut short"):
            olrank.Ranker(features=6, normalise="none", start_from=tmp_path / "short.onnx")


def test_a_python_without_onnxruntime_says_so(tmp_path, monkeypatch):
    _, onnx = given(tmp_path=tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(olrank.DataError, match=r"model.onnx: onnxruntime computes .*pip install onnxruntime\.$"):
        olrank.Ranker(features=6, normalise="none", start_from=onnx)


def onnx_file(path, operation, weight, kept_in=None):
    """A model whose score is the sum of operation(features, weight); `kept_in` is a file beside it that has the weight."""
    onnx = pytest.importorskip("onnx", reason="onnx writes the models")
    tensor = onnx.numpy_helper.from_array(weight, "weight")
    if kept_in:
        weight.tofile(path.parent / kept_in)
        onnx.external_data_helper.set_external_data(tensor, kept_in)
        tensor.ClearField("raw_data")
    axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
    given, scores = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", columns]) for name, columns in (("docs", 6), ("scores", 1)))
    nodes = [onnx.helper.make_node(operation, ["docs", "weight"], ["terms"]), onnx.helper.make_node("ReduceSum", ["terms", "axes"], ["scores"])]
    graph = onnx.helper.make_graph(nodes, "model", [given], [scores], [tensor, axes])
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    return path


def test_a_score_of_zeros_that_is_not_finite_is_refused(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime computes the scores of ONNX models")
    model = olrank.load_model(onnx_file(tmp_path / "model.onnx", "Div", np.zeros((1, 6), dtype=np.float32)))  # 0/0
    for docs in (np.zeros((2, 6), dtype=np.float32), np.ones((2, 6), dtype=np.float32)):
        refused("gives a score that is not finite", lambda: model.score(docs, [2]), olrank.NumericError)


def test_weights_outside_the_file_are_not_read(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="onnxruntime computes the scores of ONNX models")
    weight = np.ones((6, 10_000), dtype=np.float32)
    assert np.all(olrank.load_model(onnx_file(tmp_path / "whole.onnx", "MatMul", weight)).score(np.ones((2, 6), dtype=np.float32), [2]) == 60_000)
    model = onnx_file(tmp_path / "model.onnx", "MatMul", weight, kept_in="weight.bin")
    monkeypatch.chdir(tmp_path)  # where onnxruntime would find it
    refused(r"model.onnx: onnxruntime cannot read this ONNX model: .* weights in another file", lambda: olrank.load_model(model), olrank.DataError)
