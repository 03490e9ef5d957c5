"""Own rankers, users and metrics have what built-in ones have: queries, certainty, examination, curves, sweeps, and the examples."""

import csv
import functools
import importlib.util
import io
import json
import pathlib
import re
import sys
import traceback
import types

import numpy as np
import pytest

import olrank
from small_experiment import Weights
from conftest import refused

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = {
    "data": {"source": "synth:small?queries=30&test_queries=20"},
    "protocol": {"rounds": 20, "eval_every": 10, "seeds": [1]},
    "clicks": {"models": ["navigational"]},
    "run": {"device": "cpu"},
}


class ByQuery(Weights):
    """Its scores are those, query by query, less what all documents of the query have."""

    def score(self, X, query):
        assert X is not query.X and np.array_equal(X, query.X) and query.qid and query.person == 0
        return X @ self.weights - query.number


class Sure(Weights):
    """Certain of the order of documents that are far apart."""

    def certain_orders(self, query):
        scores = query.X @ self.weights
        return np.argwhere(scores[:, None] - scores > 0.5)


class Greedy(Sure):
    def certain_orders(self, query):
        return []


def play(config=CONFIG, **own):
    return olrank.run(config, progress=False, **own)


def curves(results, ranker):
    return [one.figures for one in results if one.trial.ranker == ranker]


def test_scores_by_query_are_those_of_all_queries_together():
    results = play(rankers={"all": Weights, "by-query": ByQuery})
    one, other = curves(results, "all"), curves(results, "by-query")
    assert [point["offline"] for point in one] == [point["offline"] for point in other] and one[2]["offline"] != one[0]["offline"]


def test_certain_orders_give_figures_of_certainty(tmp_path):
    results = play(rankers={"sure": Sure, "greedy": Greedy, "weights": Weights}, out=tmp_path / "out")
    last = {name: curves(results, name)[-1] for name in ("sure", "greedy", "weights")}
    assert 0 < last["sure"]["certain_share"] < 1 and last["sure"]["false_certain"]["of"] > 0 and last["sure"]["blocks"] > 1
    assert last["greedy"]["certain_share"] == 0 and last["weights"]["certain_share"] is None
    assert all(last[name]["offline"] == last["sure"]["offline"] for name in last)
    figures = {row["figure"] for row in csv.DictReader(io.StringIO(olrank.report(results, "csv"))) if row["ranker"] == "sure"}
    assert {"certain-share", "false-certain"} <= figures


REFUSED = olrank.InvalidArgument


@pytest.mark.parametrize(
    ("method", "answer", "error", "message"),
    [
        ("rank", lambda self, query, round: [0, 0, 1], REFUSED, "document 0"),
        ("rank", lambda self, query, round: [99], REFUSED, "document 99"),
        ("rank", lambda self, query, round: [0.5], REFUSED, "must return the rows of the query"),
        ("rank", lambda self, query, round: "abc", TypeError, "rank"),
        ("learn", lambda self, query, shown, clicks, round: shown.sort(), ValueError, "read-only"),
        ("learn", lambda self, query, shown, clicks, round: clicks.sort(), ValueError, "read-only"),
        ("score", lambda self, X: [1.0], REFUSED, "one score for each"),
        ("score", lambda self, X: np.full(len(X), np.nan), REFUSED, "score"),
        ("score", lambda self, X: X.__setitem__(0, 1.0), ValueError, "read-only"),
        ("score", lambda self, X, query: np.full(len(X), np.nan), REFUSED, "Ranker 'w' gave document 0 of .* of query '.*' the score nan after round 0"),
        ("score", lambda self, X, query: [1.0], REFUSED, r"the shape \(1,\) for .* documents: give one score for each"),
        ("score", lambda self, X, query: {}[query.number], KeyError, "0"),
        ("score", lambda self, X, query: query.X.__setitem__(0, 1.0), ValueError, "read-only"),
        ("certain_orders", lambda self, query: [(0, 1), (1, 0)], REFUSED, r"certain of \(0, 1\) in round 1: its orders go in a circle"),
        ("certain_orders", lambda self, query: [(0, 999)], REFUSED, r"certain of \(0, 999\) in round 1: the query has"),
        ("certain_orders", lambda self, query: [(2, 2)], REFUSED, "an order has two documents"),
        ("certain_orders", lambda self, query: [0, 1], REFUSED, r"must be pairs \(a, b\) of rows of the query"),
        ("certain_orders", lambda self, query: [(0, 0.5)], REFUSED, "must be pairs"),
        ("certain_orders", lambda self, query: [(0, float("nan"))], REFUSED, "must be pairs"),
        ("certain_orders", lambda self, query: "ab", TypeError, "certain_orders"),
    ],
)
def test_answers_of_rankers_are_checked(method, answer, error, message, monkeypatch):
    monkeypatch.setattr(Sure, method, answer)
    with pytest.raises(error, match=message) as raised:
        play(rankers={"w": Sure})
    if error in (KeyError, ValueError):
        assert any(frame.name == "<lambda>" for frame in traceback.extract_tb(raised.value.__traceback__))


class Looks:
    """Sees the query and skips every second document."""

    people = 2

    def __init__(self):
        self.seen = {}

    def click(self, query, shown, round):
        self.seen[round] = (query.number, query.qid, query.X.copy(), query.grades.copy(), query.person)
        examined = np.arange(len(shown)) % 2 == 0
        self.kept = query
        return examined & (query.grades[shown] > 1), examined


class Asks(Weights):
    asked = {}

    def learn(self, query, shown, clicks, round):
        self.asked[round] = (query.number, query.qid, query.X.copy(), query.person)


def test_a_user_sees_the_query_and_says_what_it_examined():
    user = Looks()
    results = play(CONFIG | {"clicks": {}}, users={"looks": user}, rankers={"asks": Asks})
    train = olrank.synthetic("small", part="train", queries=30, test_queries=20)
    assert len(user.seen) == 20 and {person for *_, person in user.seen.values()} == {0, 1}
    for round, (number, qid, X, grades, person) in user.seen.items():
        begin, end = train.offsets[number : number + 2]
        assert qid == train.qids[number] and X.shape == (end - begin, train.features) and np.array_equal(grades, train.y[begin:end])
        asked = Asks.asked[round]
        assert (number, qid, person) == (asked[0], asked[1], asked[3]) and np.array_equal(X, asked[2])
    online = curves(results, "asks")[-1]["online"]
    assert 0 < online["examined_regret"] < online["regret"]
    whole = play(CONFIG | {"clicks": {}}, users={"looks": Everything()}, rankers={"asks": Asks})
    assert online["examined_regret"] < curves(whole, "asks")[-1]["online"]["examined_regret"]
    with pytest.raises(ValueError, match="read-only"):
        user.kept.X[0] = 1


class Everything(Looks):
    def click(self, query, shown, round):
        return super().click(query, shown, round)[0]


def test_answers_of_users_are_checked():
    kept = []
    for click, error, message in (
        (lambda shown, round: ([0] * len(shown), [1]), REFUSED, "The examined documents of round 1 that click.. returned has 1 values"),
        (lambda shown, round: ([1] * len(shown), [0] * len(shown)), REFUSED, "User 'odd' examined rank 1 by 0 in round 1"),
        (lambda shown, round: ([0] * len(shown), [2] * len(shown)), REFUSED, "has 2 at rank 1: it must be 0 or 1"),
        (lambda shown, round: [1], REFUSED, "1 values for 10 shown documents"),
        (lambda shown, round: shown.__setitem__(0, 1), ValueError, "read-only"),
        (lambda shown, round: {}[f"in round {round}"], KeyError, "in round 1"),
    ):
        odd = types.SimpleNamespace(click=lambda query, shown, round, click=click: kept.append(query) or click(shown, round))
        refused(message, lambda: play(CONFIG | {"clicks": {}}, users={"odd": odd}, rankers={"w": Weights}), error)
        refused("first read during click", lambda: kept[-1].X, REFUSED)
    for users, error, message in (({"odd": Looks}, TypeError, "must be an object with click"), ({"perfect": Looks()}, REFUSED, "perfect")):
        refused(message, lambda: play(users=users, rankers={"w": Weights}), error)
    with pytest.raises(REFUSED, match="odd"):  # none of them is left behind
        play(CONFIG | {"clicks": {"models": ["odd"]}}, rankers={"w": Weights})


def spread(grades, scores):
    return None if grades.max() == 0 else float(scores.max() - scores.min())


def ndcg_at_1(grades, scores):
    best = float(2.0 ** grades.max() - 1)
    return (2.0 ** grades[np.argmax(scores)] - 1) / best if best else 0.0


def test_a_metric_of_ones_own_has_a_curve(tmp_path):
    told = []
    own = {"rankers": {"w": Weights}, "metrics": {"spread": spread, "own-1": ndcg_at_1}}
    config = CONFIG | {"protocol": CONFIG["protocol"] | {"metrics": ["ndcg@1"], "seeds": [1, 2]}}
    results = play(config, out=tmp_path / "out", callbacks=[lambda figures, step, trial: told.append(figures)], **own)
    for point in curves(results, "w"):
        assert point["metrics"]["own-1"] == pytest.approx(point["metrics"]["ndcg@1"], abs=1e-12)
    last = [one.figures["metrics"]["spread"] for one in results if one.round == 20]
    assert len(last) == 2 and min(last) > 0 and curves(results, "w")[0]["metrics"]["spread"] == 0
    assert {"offline.ndcg@10", "metrics.spread"} <= set(told[0])
    rows = [row for row in csv.DictReader(io.StringIO(olrank.report(results, "csv"))) if row["figure"] == "offline-spread"]
    final = [row for row in rows if row["round"] == ""]
    assert len(final) == 1 and float(final[0]["mean"]) == pytest.approx(np.mean(last)) and float(final[0]["low"]) < float(final[0]["mean"])
    assert {row["round"] for row in rows} == {"", "0", "10", "20"}
    assert {"& spread", "& own-1"} <= set(re.findall(r"& (?:spread|own-1)", results.to_latex())) and "offline-spread" in json.dumps(results.compare())
    assert any("spread" in name for name in results.figures())

    half = config | {"protocol": config["protocol"] | {"rounds": 10}}
    play(half, out=tmp_path / "half", **own)
    whole = play(config, out=tmp_path / "half", resume=True, **own)
    assert [point["metrics"] for point in curves(whole, "w")] == [point["metrics"] for point in curves(results, "w")]
    with pytest.raises(olrank.InvalidArgument, match="metric spread"):
        play(config | {"protocol": config["protocol"] | {"rounds": 30}}, out=tmp_path / "half", resume=True, **own | {"metrics": own["metrics"] | {"spread": ndcg_at_1}})
    plain = play(config, rankers={"w": Weights})
    assert [trial.fingerprint for trial in plain.trials] == [trial.fingerprint for trial in results.trials]


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        (lambda grades, scores: np.nan, olrank.InvalidArgument, "Metric 'm' returned nan for query 0: return a finite number, or None"),
        (lambda grades, scores: None, olrank.InvalidArgument, "None for all 20 queries"),
        (lambda grades, scores: "much", TypeError, "returned a str for query 0"),
        (lambda grades, scores: {}["x"], KeyError, "x"),
        (5, TypeError, "must be a function of grades and scores"),
    ],
)
def test_metrics_are_checked(metric, error, message):
    refused(message, lambda: play(rankers={"w": Weights}, metrics={"m": metric}), error)
    for name, sentence in (("map", "built in"), ("a/b", "cannot be named")):
        refused(sentence, lambda: play(rankers={"w": Weights}, metrics={name: spread}))
    with pytest.raises(olrank.InvalidArgument, match="Unknown metric 'm'"):  # it is not left behind
        play(CONFIG | {"protocol": CONFIG["protocol"] | {"metrics": ["m"]}}, rankers={"w": Weights})


def test_rows_of_a_configuration_have_parameters_of_own_rankers(tmp_path):
    rows = [{"kind": "w", "name": "fast", "step": 4.0}, {"kind": "w"}, {"kind": "pairrank"}]
    results = play(CONFIG | {"ranker": rows}, out=tmp_path / "out", rankers={"w": Weights, "sure": Sure})
    assert {trial.ranker for trial in results.trials} == {"fast", "w", "pairrank", "sure"}
    steps = {trial.ranker: trial.own_ranker().step for trial in results.trials if trial.ranker != "pairrank"}
    assert steps == {"fast": 4.0, "w": 1.0, "sure": 1.0}
    by_hand = play(CONFIG, rankers={"w": functools.partial(Weights, step=4.0)})
    assert curves(results, "fast")[-1]["offline"] == curves(by_hand, "w")[-1]["offline"]
    text = "[[ranker]]\nname = 'x'\nkind = 'w'\nstep = 4\n[data]\nsource = 'synth:small?queries=30&test_queries=20'\n"
    (tmp_path / "own.toml").write_text(text + "[protocol]\nrounds = 2\nseeds = [1]\n")
    assert olrank.run(tmp_path / "own.toml", progress=False, rankers={"w": Weights}, out=tmp_path / "x").trials[0].own_ranker().step == 4
    for row, message in (({"kind": "w", "step": np.ones(2)}, "values of Python"), ({"kind": "external", "name": "w", "own": "w(step=x())"}, "values of Python")):
        refused(message, lambda: play(CONFIG | {"ranker": [row]}, rankers={"w": Weights}))
    refused("stop", lambda: play(CONFIG | {"ranker": [{"kind": "w", "stop": 1}]}, rankers={"w": Weights}), TypeError)


def test_a_sweep_tries_parameters_of_own_rankers():
    config = CONFIG | {"sweep": {"w": {"step": [0.0, 1.0]}}}
    tuned = olrank.tune(config, progress=False, rankers={"w": Weights}, metrics={"spread": spread})
    assert [(winner["ranker"], winner["chosen"]) for winner in tuned.winners] == [("w", {"step": 1.0})]
    assert len(tuned.tuning.trials) == 2 and tuned.test.trials[0].own_ranker().step == 1.0
    assert curves(tuned.test, tuned.test.trials[0].ranker)[-1]["metrics"]["spread"] > 0


def test_ranges_of_own_parameters_are_drawn():
    def tried(draws, **axes):
        config = CONFIG | {"sweep": {"w": axes}} | ({"search": {"draws": draws}} if draws else {})
        return [trial.own_ranker().step for trial in olrank.tune(config, progress=False, rankers={"w": Weights}).tuning.trials]

    spread = {"from": 0.01, "to": 10.0, "scale": "log"}
    drawn = tried(4, step=spread)
    assert len(set(drawn)) == 4 and all(0.01 <= step <= 10 and step == float(f"{step:.3g}") for step in drawn)
    assert set(drawn) < set(tried(6, step=spread))
    assert set(tried(8, step={"from": 1, "to": 2})) == {1, 2} and set(tried(8, step=[0.5, 4.0])) == {0.5, 4.0}
    for draws, wrong, message in (
        (0, spread, "give the number of points to draw"),
        (2, {"from": 2, "to": 1}, "must have from and a larger to"),
        (2, {"from": 0, "to": 1, "scale": "log"}, "a from above 0"),
        (2, {"from": 1, "to": 2, "step": 1}, "must have from and a larger to"),
        (2, {"from": "a", "to": 2}, "must have from and a larger to"),
    ):
        refused(message, lambda: tried(draws, step=wrong))


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"examples/own-ranker/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_the_example_wraps_pairrank(tmp_path):
    lines = (ROOT / "examples/own-ranker/pairrank_bonus.py").read_text().splitlines()
    assert len(lines) <= 35
    results = example("pairrank_bonus").main("synth:small?queries=20&test_queries=10", rounds=20, seeds=2, out=tmp_path / "out")
    assert {trial.ranker for trial in results.trials} == {"pairrank", "bonus"}
    bonus = curves(results, "bonus")
    assert bonus[-1]["certain_share"] is not None and bonus[-1]["offline"] != bonus[0]["offline"]
    assert all(name in results.plot().svg for name in ("pairrank", "bonus"))


def test_a_learner_with_personal_features_serves_people_with_tastes():
    found = example("personal").main(rounds=400, seeds=2, source="synth:small?queries=10")
    assert found["ndcg"]["difference"]["mean"] > 0 and found["people"] == 8
