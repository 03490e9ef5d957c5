"""olrank.ope() and olrank.fit_clicks() say what the commands say."""

import json

import numpy as np
import pytest

import olrank
from conftest import refused


@pytest.fixture(scope="module")
def shown(tmp_path_factory, program):
    """A trace of a trial, its data and two models."""
    folder = tmp_path_factory.mktemp("logs")
    draws = np.random.default_rng(3)
    X = draws.random((120, 4)).round(3)
    y = (2.5 * X[:, 0] + draws.random(120)).astype(int)
    data = olrank.Dataset.from_arrays(X, y, np.repeat(np.arange(20), 6))
    data.save(folder / "data.txt")
    program("run", "--data-train", folder / "data.txt", "--data-test", folder / "data.txt", "--ranker", "pdgd", "--clicks", "navigational",
            "--seeds", 1, "--rounds", 300, "--trace", folder / "trace.jsonl", "--out", folder / "run", "--quiet")
    return folder, olrank.load_letor(folder / "data.txt")


def test_ope_is_the_command(shown, program):
    folder, data = shown
    trial = folder / "run/trials/pdgd/navigational/fold1/seed1"
    command = ["ope", "--log", folder / "trace.jsonl", "--data", folder / "data.txt", "--model", trial, "--policy", "epsilon=0.2", "--at", "3"]
    expected = json.loads(program(*command, "--json"))
    told = olrank.ope(folder / "trace.jsonl", trial, data=data, policy="epsilon=0.2", at=3, page=folder / "page.html")
    assert told == expected
    assert set(told["policies"][0]["estimates"]) == {"ips", "rips", "snips", "snrips", "direct", "cascade-dr", "intervention-aware"}
    assert "<svg" in (folder / "page.html").read_text()
    both = olrank.ope(folder / "trace.jsonl", [olrank.load_model(trial), trial], data=data, policy="epsilon=0.2", at=3, estimators="snips")
    first, second = both["policies"]
    assert first["name"] == "model1" and first["estimates"] == second["estimates"] == {"snips": expected["policies"][0]["estimates"]["snips"]}


def test_fit_clicks_is_the_command(shown, program):
    folder, _ = shown
    expected = json.loads(program("clicks", "fit", "--log", folder / "trace.jsonl", "--model", "pbm", "--json"))
    assert olrank.fit_clicks(folder / "trace.jsonl", "pbm") == expected


def test_a_model_learns_from_a_log_as_the_command_does(shown, tmp_path, program):
    folder, data = shown
    program("train", "--data-train", folder / "data.txt", "--data-test", folder / "data.txt", "--log", folder / "trace.jsonl", "--estimator", "dr",
            "--click-model", "cascade", "--clip", 5, "--network", "linear", "--epochs", 5, "--out", tmp_path / "out", "--quiet")
    model = olrank.fit(data, log=folder / "trace.jsonl", estimator="dr", click_model="cascade", clip=5, network="linear", epochs=5)
    assert np.array_equal(model.score(data.X, data.group), olrank.load_model(tmp_path / "out").score(data.X, data.group))


def test_what_is_wrong_is_said(shown, tmp_path):
    folder, data = shown
    trace = folder / "trace.jsonl"
    cases = [
        (lambda: olrank.ope(trace, data=data), "model is required"),
        (lambda: olrank.ope(trace, policy="incumbent", data=data, at=0), "^at must be from 1 to 1000"),
        (lambda: olrank.ope(trace, policy="best", data=data), "^policy must be greedy"),
        (lambda: olrank.ope(trace, policy="incumbent", data=data, click_model="rank-only"), "^click_model must tell"),
        (lambda: olrank.ope(trace, policy="incumbent", data=data, estimators=["best"]), "estimators"),
        (lambda: olrank.fit_clicks(trace, holdout=2), "^holdout must be above 0"),
        (lambda: olrank.fit_clicks(trace, "best"), "^model"),
        (lambda: olrank.fit(None), "no training data"),
        (lambda: olrank.fit(data, log=trace, estimator="best"), "^estimator must be naive"),
        (lambda: olrank.fit(data, log=trace, clip=0.5), "^clip must be at least 1"),
        (lambda: olrank.fit(data, log=trace, loss="ranknet"), "is of grades"),
    ]
    for call, sentence in cases:
        refused(sentence, lambda: call())
    for call, sentence in ((lambda: olrank.fit_clicks(tmp_path / "none.jsonl"), "none.jsonl"), (lambda: olrank.fit(None, log=trace), "has no inputs of documents")):
        refused(sentence, lambda: call(), olrank.Error)
    with pytest.raises(TypeError):
        olrank.ope(trace, 5)
