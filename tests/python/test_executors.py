"""Experiments on executors: the folder of a local run, lost workers, errors of trials, and what is kept."""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import signal

import pytest

import olrank
from small_experiment import CONFIG, Weights
from conftest import refused


class Reader:
    """Clicks the first good documents. A trial of it can be told to fail, or to kill its process once."""

    def click(self, query, shown, round):
        if round == 1 and "OLRANK_TEST_FAIL" in os.environ:
            raise LookupError("The reader has gone.")
        if round == 1 and (mark := os.environ.get("OLRANK_TEST_KILL")) and not os.path.exists(mark):
            pathlib.Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [rank < 3 and query.coin(doc) < 0.3 * query.grades[doc] for rank, doc in enumerate(shown)]


def spread(grades, scores):
    return float(scores.max() - scores.min())


class Here(concurrent.futures.Executor):
    """Plays each task in this process as soon as it is submitted, but loses the first `losses` of every trial."""

    def __init__(self, losses=0):
        self.losses = losses
        self.submitted = []

    def submit(self, function, task):
        future = concurrent.futures.Future()
        if self.submitted.count(task.trial) < self.losses:
            future.set_exception(concurrent.futures.BrokenExecutor("The worker has died."))
        else:
            future.set_result(function(task))
        self.submitted.append(task.trial)
        return future


def pool(processes=1):
    return concurrent.futures.ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


def without_times(value):
    """Returns what repeats: no times, no memory, no name of the folder, and no checksums of files with times."""
    if isinstance(value, dict):
        changing = ("seconds", "started", "finished", "peak_memory_bytes", "out", "check", "curve.jsonl")
        return {key: without_times(entry) for key, entry in value.items() if key not in changing and "second" not in key}
    return [without_times(entry) for entry in value] if isinstance(value, list) else value


def contents(out):
    """Every file of a folder of results; of those with times in them what repeats."""
    whole = {}
    for path in sorted(pathlib.Path(out).rglob("*")):
        name = str(path.relative_to(out))
        if path.is_dir() or name == "report.html" or path.name == "state.safetensors":
            whole[name] = None
        elif path.suffix == ".json":
            whole[name] = without_times(json.loads(path.read_text()))
        elif path.suffix == ".jsonl":
            whole[name] = [without_times(json.loads(line)) for line in path.read_text().splitlines()]
        elif name == "config.toml":
            whole[name] = [line for line in path.read_text().splitlines() if not line.startswith("out = ")]
        elif path.suffix == ".csv":
            cells = [line.split(",") for line in path.read_text().splitlines()]
            changing = {place for place, one in enumerate(cells[0]) if "second" in one or "memory" in one}
            whole[name] = [[cell for place, cell in enumerate(line) if place not in changing] for line in cells]
        else:
            whole[name] = path.read_bytes()
    return whole


def trials_of(out):
    return {name: value for name, value in contents(out).items() if name.startswith("trials")}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    out = tmp_path_factory.mktemp("local") / "out"
    olrank.run(CONFIG, progress=False, out=out)
    return contents(out)


def test_processes_write_the_folder_of_a_local_run(tmp_path):
    config = CONFIG | {"protocol": CONFIG["protocol"] | {"seeds": 7}}
    own = {"users": {"reader": Reader()}, "rankers": {"counts": Weights}, "metrics": {"spread": spread}}
    told = []
    olrank.run(config, progress=False, out=tmp_path / "local", **own)
    with pool(2) as executor:
        results = olrank.run(config, progress=False, out=tmp_path / "pool", executor=executor, callbacks=[lambda *one: told.append(one[0])], **own)
    assert all("metrics.spread" in figures for figures in told) and results.trials[0].curve[-1]["metrics"]["spread"] > 0
    assert {(trial.ranker, trial.user, trial.seed) for trial in results.trials} == {
        (ranker, user, 7) for ranker in ("linear", "net", "counts") for user in ("navigational", "reader")
    }
    assert contents(tmp_path / "pool") == contents(tmp_path / "local")
    assert olrank.Ranker.load(tmp_path / "pool" / "trials/linear/reader/fold1/seed7").rounds == 30


def test_plays_only_what_is_missing(tmp_path, local):
    out = tmp_path / "out"
    first = Here()
    olrank.run(CONFIG | {"protocol": CONFIG["protocol"] | {"seeds": [1]}}, progress=False, out=out, executor=first)
    assert first.submitted == ["trials/linear/navigational/fold1/seed1", "trials/net/navigational/fold1/seed1"]
    refused("Continue with resume=True, replace them with force=True", lambda: olrank.run(CONFIG, progress=False, out=out, executor=first))
    second = Here()
    olrank.run(CONFIG, progress=False, out=out, executor=second, resume=True)
    assert second.submitted == ["trials/linear/navigational/fold1/seed2", "trials/net/navigational/fold1/seed2"]
    assert {name for name, value in contents(out).items() if value != local[name]} == {"manifest.json"}  # of two runs
    assert trials_of(out) == {name: value for name, value in local.items() if name.startswith("trials")}
    longer = CONFIG | {"protocol": CONFIG["protocol"] | {"rounds": 40}}
    olrank.run(longer, progress=False, out=out, executor=Here(), resume=True)
    olrank.run(CONFIG, progress=False, out=tmp_path / "longer")
    olrank.run(longer, progress=False, out=tmp_path / "longer", resume=True)
    assert trials_of(out) == trials_of(tmp_path / "longer")
    refused("an experiment can be extended, not shortened", lambda: olrank.run(CONFIG, progress=False, out=out, executor=Here(), resume=True))
    fewer = CONFIG | {"ranker": CONFIG["ranker"][:1]}
    olrank.run(fewer, progress=False, out=out, executor=Here(), force=True)
    olrank.run(fewer, progress=False, out=tmp_path / "fewer")
    there = {name: value for name, value in contents(out).items() if value is not None}
    assert there == {name: value for name, value in contents(tmp_path / "fewer").items() if value is not None}


def test_refuses_before_a_task_is_submitted(tmp_path):
    executor = Here()
    for config, message in [
        ({"data": {"sorce": "synth:small"}}, "sorce.*source"),
        (CONFIG | {"clicks": {"models": ["stranger"]}}, "stranger"),
    ]:
        refused(message, lambda: olrank.run(config, progress=False, executor=executor))
    (tmp_path / "letter.txt").touch()
    refused("not a folder that olrank made", lambda: olrank.run(CONFIG, progress=False, out=tmp_path, executor=executor))
    main = type("Main", (Weights,), {"__module__": "__main__"})
    refused("'counts' is defined in the script itself", lambda: olrank.run(CONFIG, progress=False, executor=executor, rankers={"counts": main}))
    assert executor.submitted == []


def test_an_error_of_a_trial_ends_the_run_and_keeps_finished_trials(tmp_path, monkeypatch):
    config = CONFIG | {"ranker": CONFIG["ranker"][:1]}
    users = {"reader": Reader()}
    monkeypatch.setenv("OLRANK_TEST_FAIL", "1")
    with pytest.raises(LookupError, match="The reader has gone") as raised:
        olrank.run(config, progress=False, out=tmp_path / "out", executor=Here(), users=users)
    assert "in click" in "".join(raised.value.__notes__)
    assert [trial.finished for trial in olrank.Results(tmp_path / "out").trials].count(True) >= 1
    monkeypatch.delenv("OLRANK_TEST_FAIL")
    executor = Here()
    olrank.run(config, progress=False, out=tmp_path / "out", executor=executor, users=users, resume=True)
    assert executor.submitted[0] == "trials/linear/reader/fold1/seed1"
    assert "trials/linear/navigational/fold1/seed1" not in executor.submitted
    olrank.run(config, progress=False, out=tmp_path / "local", users=users)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_trials_of_lost_workers_are_played_again(tmp_path, local, caplog):
    executor = Here(losses=3)
    olrank.run(CONFIG, progress=False, out=tmp_path / "out", executor=executor)
    assert contents(tmp_path / "out") == local
    assert len(executor.submitted) == 4 * 4
    assert "lost its worker and is played again: BrokenExecutor: The worker has died." in caplog.text
    with pytest.raises(olrank.Error, match="lost its worker 4 times, at last by BrokenExecutor"):
        olrank.run(CONFIG, progress=False, out=tmp_path / "never", executor=Here(losses=4))
    assert not (tmp_path / "never/trials").exists()


def test_a_trial_that_fails_leaves_the_others(tmp_path, caplog):
    config = CONFIG | {"ranker": [{"kind": "pdgd", "learning_rate": 1e38}, CONFIG["ranker"][0]]}
    results = olrank.run(config, progress=False, out=tmp_path / "out", executor=Here())
    assert [(trial.ranker, trial.finished) for trial in results.trials] == [("linear", True)] * 2 + [("pdgd", False)] * 2
    assert caplog.text.count("Failed: trials/pdgd/navigational/fold1/seed1: The step of round 1") == 1
    olrank.run(config, progress=False, out=tmp_path / "local")
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_a_pool_that_broke_leaves_what_had_finished(tmp_path, monkeypatch):
    own = {"users": {"reader": Reader()}, "out": tmp_path / "out", "progress": False}
    monkeypatch.setenv("OLRANK_TEST_KILL", str(tmp_path / "killed"))
    config = CONFIG | {"ranker": CONFIG["ranker"][:1]}
    with pool() as executor, pytest.raises(olrank.Error, match="takes no more trials.*resume=True and another executor"):
        olrank.run(config, executor=executor, **own)
    assert (tmp_path / "killed").exists()
    executor = Here()
    olrank.run(config, executor=executor, resume=True, **own)
    assert "trials/linear/navigational/fold1/seed1" not in executor.submitted
    olrank.run(config, users=own["users"], progress=False, out=tmp_path / "local")
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_threads_take_turns_and_results_need_no_folder(local):
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        results = olrank.run(CONFIG, progress=False, executor=executor)
    assert trials_of(results.out) == {name: value for name, value in local.items() if name.startswith("trials")}


def test_one_run_at_a_time_in_a_folder(tmp_path):
    class Nested(Here):
        def submit(self, function, task):
            refused("in use by process", lambda: olrank.run(CONFIG, progress=False, out=tmp_path / "out", resume=True), olrank.Error)
            return super().submit(function, task)

    executor = Nested()
    olrank.run(CONFIG, progress=False, out=tmp_path / "out", executor=executor)
    assert len(executor.submitted) == 4


def test_a_bar_counts_trials(capfd, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    olrank.run(CONFIG, out=tmp_path / "out", executor=Here())
    assert "100%, 4 of 4 trials" in capfd.readouterr().err


SWEPT = CONFIG | {"sweep": {"linear.lambda": [0.1, 1.0], "net.learning_rate": [0.01, 0.1]}}
DECISIONS = ("tuning.csv", "winners.csv", "config.toml", "tuning/summary.csv", "test/summary.csv")


def decided(out):
    return {name: whole for name, whole in contents(out).items() if name in DECISIONS}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned") / "run"
    return olrank.tune(SWEPT, out=out, progress=False)


def test_tuning_is_what_the_program_tunes(tuned, tmp_path, program):
    (tmp_path / "swept.toml").write_text((tuned.out / "tune.toml").read_text())
    assert tuned.winners == json.loads(program("tune", tmp_path / "swept.toml", "--out", tmp_path / "run", "--json"))["winners"]
    assert [winner["ranker"] for winner in tuned.winners] == ["linear", "net"]
    assert decided(tuned.out) == decided(tmp_path / "run")
    assert len(tuned.tuning.trials) == 8 and len(tuned.test.trials) == 4


def test_executors_tune_as_one_process_does(tuned, tmp_path):
    executor = Here(losses=1)
    spread = olrank.tune(SWEPT, out=tmp_path / "run", progress=False, executor=executor)
    assert len(set(executor.submitted)) == 12
    assert spread.winners == tuned.winners
    assert decided(spread.out) == decided(tuned.out)
    again = Here()
    assert olrank.tune(SWEPT, out=tmp_path / "run", progress=False, resume=True, executor=again).winners == tuned.winners
    assert not again.submitted


def test_wrong_tunings_are_refused(tmp_path):
    for config, options, part in [
        (CONFIG, {}, "has no \\[sweep\\]"),
        (SWEPT, {"by": "luck"}, "by .*offline"),
        (SWEPT, {"resume": True, "force": True}, "choose one of them"),
    ]:
        refused(part, lambda: olrank.tune(config, out=tmp_path / "none", progress=False, **options))
    assert not (tmp_path / "none").exists()
    refused("which olrank[.]tune plays", lambda: olrank.run(SWEPT, out=tmp_path / "none", progress=False))
