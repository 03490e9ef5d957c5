"""Experiments from Python: the program's bits, resumed and interrupted ones, and users and rankers of one's own."""

import functools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import olrank
from small_experiment import CONFIG, Weights, ended
from conftest import refused


def fingerprints(results):
    return {(trial.ranker, trial.user, trial.seed): trial.fingerprint for trial in results.trials}


def with_ranker(*tables, **protocol):
    return CONFIG | {"ranker": list(tables), "protocol": CONFIG["protocol"] | protocol}


@pytest.fixture(scope="module")
def played():
    return olrank.run(CONFIG, progress=False)


def test_results_iterate_as_evaluations(played):
    assert [trial.finished for trial in played.trials] == [True] * 4
    evaluations = list(played)
    assert len(evaluations) == 4 * 4 and {one.round for one in evaluations} == {0, 10, 20, 30}
    first = evaluations[0]
    assert first.trial.ranker == "linear" and 0 < first.offline["ndcg@10"] < 1
    assert played.trials[0].summary["last"]["offline"] == evaluations[3].offline


def test_figures_are_the_programs(played):
    figure = played.plot()
    assert figure.svg.startswith("<svg") and figure._repr_svg_() == figure.svg and figure.caption
    assert any("time" in name or "seconds" in name for name in played.figures()) and len(played.figures()) > 2
    refused("no figure 'x'", lambda: played.plot("x"))


def test_becomes_a_table(played):
    pandas = pytest.importorskip("pandas")
    table = played.to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) == 16
    assert table.groupby("ranker")["offline.ndcg@10"].max().between(0, 1).all()


def test_has_the_bits_of_the_program(played, program, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text((played.out / "config.toml").read_text())
    program("run", config, "--out", tmp_path / "out", "--quiet")
    assert fingerprints(olrank.Results(tmp_path / "out")) == fingerprints(played)
    from_file = olrank.run(config, progress=False, out=tmp_path / "again")
    assert fingerprints(from_file) == fingerprints(played)


def test_continues_and_replaces_results(tmp_path, played):
    half = CONFIG | {"protocol": CONFIG["protocol"] | {"rounds": 20}}
    olrank.run(half, progress=False, out=tmp_path / "out")
    with pytest.raises(olrank.InvalidArgument, match="Continue with resume=True, replace them with force=True, or choose another out"):
        olrank.run(CONFIG, progress=False, out=tmp_path / "out")
    whole = olrank.run(CONFIG, progress=False, out=tmp_path / "out", resume=True)
    assert fingerprints(whole) == fingerprints(played)
    again = olrank.run(CONFIG, progress=False, out=tmp_path / "out", force=True)
    assert fingerprints(again) == fingerprints(played)


def test_ctrl_c_keeps_a_checkpoint(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(
        "import olrank, sys\n"
        f"config = {with_ranker({'kind': 'olranknet', 'width': 16}, rounds=100000, seeds=[1])!r}\n"
        "try:\n"
        f"    olrank.run(config, out={str(tmp_path / 'out')!r})\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    curve = tmp_path / "out/trials/olranknet/navigational/fold1/seed1/curve.jsonl"
    while process.poll() is None and not (curve.exists() and curve.stat().st_size > 0):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=900)
    assert out == "interrupted\n", err
    assert "resume=True" in err
    rounds = json.loads(curve.read_text().splitlines()[-1])["round"]
    config = with_ranker({"kind": "olranknet", "width": 16}, rounds=rounds + 10, eval_every=10, seeds=[1])
    with pytest.raises(olrank.Error):  # fewer rounds than played, or another curve: never silently another trial
        olrank.run(config | {"protocol": config["protocol"] | {"rounds": 1}}, progress=False, out=tmp_path / "out", resume=True)
    assert list(curve.parent.glob("checkpoint*"))


def test_a_second_ctrl_c_does_not_end_the_process():
    code = f"""
        import olrank, os, signal, time
        class Slow:
            def click(self, query, shown, round):
                if round == 1:
                    os.kill(os.getpid(), signal.SIGINT); time.sleep(0.5); os.kill(os.getpid(), signal.SIGINT)
                return [0] * len(shown)
        try:
            olrank.run({with_ranker({'kind': 'pairrank'}, rounds=1000, seeds=[1]) | {'clicks': {}}!r}, users={{'slow': Slow()}}, progress=False)
        except KeyboardInterrupt:
            print('interrupted')
    """
    code, out, err = ended(code)
    assert (code, out) == (0, "interrupted\n"), err


def test_a_ranker_that_cannot_be_pickled_is_refused_before_the_first_round():
    class Local(Weights):
        pass

    Local.unpicklable = lambda self: None
    with pytest.raises(olrank.InvalidArgument, match="Ranker 'w' cannot be pickled.*top of a module"):
        olrank.run(with_ranker({"name": "w", "kind": "external"}, seeds=[1]), progress=False, rankers={"w": Local})


def test_one_experiment_at_a_time():
    asked = []

    class Nested:
        def click(self, query, shown, round):
            refused("runs in this process already", lambda: olrank.run(CONFIG, progress=False))
            asked.append(round)
            return [0] * len(shown)

    olrank.run(with_ranker({"kind": "pairrank"}, rounds=1, seeds=[1]) | {"clicks": {}}, progress=False, users={"nested": Nested()})
    assert 1 in asked


class Navigational:
    """The built-in user of this name for grades 0 to 4, by the same coins."""

    click_rates = (0.05, 0.3, 0.5, 0.7, 0.95)
    stop_rates = (0.2, 0.3, 0.5, 0.7, 0.9)

    def click(self, query, shown, round):
        clicks = np.zeros(len(shown), dtype=bool)
        for rank, doc in enumerate(shown):
            grade = query.grades[doc]
            clicks[rank] = query.coin(doc, "click") < self.click_rates[grade]
            if clicks[rank] and query.coin(doc, "stop") < self.stop_rates[grade]:
                break
        return clicks


def test_a_user_of_ones_own_has_the_built_in_coins():
    rates = {"click": list(Navigational.click_rates), "stop": list(Navigational.stop_rates)}
    config = CONFIG | {"clicks": {"models": ["mine"]}}
    built_in = olrank.run(config | {"user": [{"name": "mine", "kind": "dependent"} | rates]}, progress=False)
    own = olrank.run(config, progress=False, users={"mine": Navigational()})
    assert fingerprints(own) == fingerprints(built_in)

    class Other(Navigational):
        click_rates = (0.6, 0.3, 0.5, 0.7, 0.95)

    assert fingerprints(olrank.run(config, progress=False, users={"mine": Other()})) != fingerprints(built_in)


def test_users_of_ones_own_join_those_that_are_named():
    config = with_ranker({"kind": "pairrank"}, rounds=2, seeds=[1])
    both = olrank.run(config, progress=False, users={"mine": Navigational()})
    assert {trial.user for trial in both.trials} == {"mine", "navigational"}
    alone = olrank.run(config | {"clicks": {}}, progress=False, users={"mine": Navigational()})
    assert {trial.user for trial in alone.trials} == {"mine"}


def test_a_ranker_of_ones_own_learns_beside_the_built_in_ones(tmp_path):
    config = with_ranker({"name": "linear", "kind": "pairrank"}, rounds=100, eval_every=50)
    results = olrank.run(config, progress=False, rankers={"mine": Weights}, out=tmp_path / "out")
    assert {trial.ranker for trial in results.trials} == {"linear", "mine"}
    mine = [one.offline["ndcg@10"] for one in results if one.trial.ranker == "mine" and one.trial.seed == 1]
    assert mine[-1] > mine[0] + 0.05
    olrank.run(config | {"protocol": config["protocol"] | {"rounds": 50}}, progress=False, rankers={"mine": Weights}, out=tmp_path / "half")
    resumed = olrank.run(config, progress=False, rankers={"mine": Weights}, out=tmp_path / "half", resume=True)
    assert fingerprints(resumed) == fingerprints(results)
    slow = {"mine": functools.partial(Weights, step=2)}
    refused("step=2", lambda: olrank.run(config, progress=False, rankers=slow, out=tmp_path / "half", resume=True))


class SavesItself(Weights):
    unpicklable = None

    def __init__(self, **settings):
        super().__init__(**settings)
        self.unpicklable = lambda: None

    def save(self):
        return self.weights.tobytes()

    def load(self, state):
        self.weights = np.frombuffer(state).copy()


def test_the_trained_object_comes_back(tmp_path):
    config = with_ranker({"kind": "pairrank"}, seeds=[1])
    results = olrank.run(config, progress=False, out=tmp_path / "out", rankers={"mine": Weights, "saves": SavesItself})
    by_name = {trial.ranker: trial for trial in results.trials}
    mine = by_name["mine"].own_ranker()
    assert isinstance(mine, Weights) and mine.weights.any()
    saves = by_name["saves"].own_ranker(SavesItself(features=10, cutoff=10, seed=1, fold=1))
    assert np.array_equal(saves.weights, mine.weights)
    refused("give an object of its class", lambda: by_name["saves"].own_ranker())
    refused("is built in", lambda: by_name["pairrank"].own_ranker())
    half = config | {"protocol": config["protocol"] | {"rounds": 10}}
    olrank.run(half, progress=False, out=tmp_path / "half", rankers={"saves": SavesItself})
    whole = olrank.run(config, progress=False, out=tmp_path / "half", rankers={"saves": SavesItself}, resume=True)
    assert fingerprints(whole)[("saves", "navigational", 1)] == by_name["saves"].fingerprint


def test_rankers_and_users_of_ones_own_are_tuned():
    config = with_ranker({"kind": "pairrank"}, seeds=[1], rounds=10) | {"clicks": {}, "sweep": {"lambda": [0.1, 1.0]}}
    tuned = olrank.tune(config, progress=False, rankers={"mine": Weights}, users={"own": Navigational()})
    assert {winner["ranker"] for winner in tuned.winners} == {"pairrank", "mine"}
    assert {trial.user for trial in tuned.test.trials} == {"own"}


def test_a_user_of_many_people_says_who_asks():
    asked = {}

    class People(Navigational):
        people = 3

        def click(self, query, shown, round):
            asked.setdefault(round, set()).add(query.person)
            return super().click(query, shown, round)

    olrank.run(with_ranker({"kind": "pairrank"}, {"kind": "pdgd", "network": "linear"}) | {"clicks": {}}, progress=False, users={"people": People()})
    one_each = [people for people in asked.values() if len(people) <= 2]  # two seeds, and both rankers meet the same person
    assert len(one_each) == len(asked) == 30 and set().union(*asked.values()) == {0, 1, 2}

    class None_(Navigational):
        people = 0

    refused("people = 0: it must be a whole number", lambda: olrank.run(CONFIG, progress=False, users={"none": None_()}), TypeError)


def test_a_bar_shows_in_terminals_only(tmp_path, capfd):
    olrank.run(with_ranker({"kind": "pairrank"}, seeds=[1]))
    assert capfd.readouterr().err == ""
    import pty

    lead, follow = pty.openpty()
    script = f"import olrank; olrank.run({with_ranker({'kind': 'pairrank'}, seeds=[1])!r})"
    subprocess.run([sys.executable, "-c", script], stderr=follow, check=True)
    os.close(follow)
    shown = os.read(lead, 65536).decode()
    os.close(lead)
    assert "100%, 1 of 1 trials" in shown


def test_a_trial_leaves_its_ranker_and_its_model():
    trial = olrank.run(with_ranker({"kind": "pairrank"}, seeds=[5], rounds=25, eval_every=25), progress=False).trials[0]  # outlives its results
    ranker, model = olrank.Ranker.load(trial.folder), olrank.load_model(trial.folder)
    assert ranker.rounds == 25 and ranker.kind == "pairrank"
    data = olrank.synthetic("small", part="test", queries=40)
    for query in list(data.queries())[:5]:
        assert np.allclose(ranker.score(query.X), model.score(query.X, [len(query.X)]), rtol=1e-5, atol=1e-6)
    values = olrank.evaluate(data, model.score(data.X, data.group))
    assert values["ndcg@10"] == pytest.approx(trial.curve[-1]["offline"]["ndcg@10"], abs=1e-9)
