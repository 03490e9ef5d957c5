"""The program that comes with the package, and its work on folders as functions."""

import json
import pathlib
import subprocess
import sys
import tomllib

import numpy as np

import olrank
from conftest import refused

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = {
    "data": {"source": "synth:small?queries=20"},
    "protocol": {"rounds": 5, "seeds": [1]},
    "clicks": {"models": ["navigational"]},
    "ranker": [{"kind": "pairrank"}],
}


def test_the_package_brings_the_program(program, tmp_path):
    script = pathlib.Path(sys.executable).with_name("olrank")
    for command in ([script], [sys.executable, "-m", "olrank"]):
        told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert told.stdout.startswith(f"olrank {olrank.__version__} (")
        wrong = subprocess.run([*command, "run", "--widht", "3"], capture_output=True, text=True)
        assert wrong.returncode == 2 and wrong.stderr.startswith("olrank: ") and "Traceback" not in wrong.stderr
    results = olrank.run(CONFIG, progress=False, out=tmp_path / "out")
    ours = subprocess.run([script, "report", tmp_path / "out", "--json"], capture_output=True, text=True, check=True).stdout
    assert ours == program("report", tmp_path / "out", "--json") == olrank.report(results)


def test_a_trace_names_the_settings_that_count(tmp_path):
    results = olrank.trace(CONFIG, tmp_path / "trace.jsonl", tmp_path / "out")
    assert results.trials[0].fingerprint == olrank.run(CONFIG, progress=False).trials[0].fingerprint
    head, *rounds = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    (ranker,) = head["config"]["ranker"]
    assert ranker["lambda"] > 0 and "width" not in ranker and len(rounds) == 5
    told = olrank.Ranker("pairrank", features=3).settings
    assert set(ranker) == {line.partition(" = ")[0] for line in told.splitlines() if " = " in line}
    net = CONFIG | {"ranker": [{"kind": "olranknet", "width": 8}]}
    olrank.trace(net, tmp_path / "net.jsonl", tmp_path / "net", detail=True)
    head, first, *_ = [json.loads(line) for line in (tmp_path / "net.jsonl").read_text().splitlines()]
    assert head["config"]["ranker"][0]["width"] == 8
    refused("exactly one trial", lambda: olrank.trace(CONFIG | {"protocol": {"rounds": 5, "seeds": [1, 2]}}, tmp_path / "t", tmp_path / "two"))


def test_recorded_feedback_is_replayed(tmp_path):
    data = olrank.synthetic("small", queries=20)
    lines = [{"qid": qid, "shown": [1, 0], "clicks": [1, 0]} for qid in data.qids]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = {"data": CONFIG["data"], "ranker": CONFIG["ranker"], "protocol": {"seeds": [1]}}
    results = olrank.replay(config, tmp_path / "log.jsonl", tmp_path / "out")
    assert results.trials[0].summary["rounds"] == 20
    refused("force=True", lambda: olrank.replay(config, tmp_path / "log.jsonl", tmp_path / "out"), olrank.Error)
    assert olrank.replay(config, tmp_path / "log.jsonl", tmp_path / "out", force=True).trials[0].fingerprint == results.trials[0].fingerprint


def test_models_are_exported(tmp_path):
    data = olrank.Dataset.from_arrays(np.random.default_rng(1).random((12, 2)), [0, 1, 2] * 4, group=[6, 6])
    model = olrank.fit(data, epochs=1)
    olrank.export(model, "json", tmp_path / "model.json", feature_names=["price", "age"])
    assert json.loads((tmp_path / "model.json").read_text())["feature_names"] == ["price", "age"]
    model.save(tmp_path / "model.safetensors")
    olrank.export(tmp_path / "model.safetensors", "onnx", tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 0
    refused("onxx", lambda: olrank.export(model, "onxx", tmp_path / "x"))


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {olrank.__version__}\n" in text and text.count("type: conference-paper") == 5
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0" and "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
