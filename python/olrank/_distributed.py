"""Experiments on an executor: each task plays one trial, and its files are gathered into one folder.

A worker plays a trial as an experiment of its own in a temporary folder and returns what that holds, so that workers and
the caller need no common file system. Other trials of an experiment do not change the bits of one
(docs/REPRODUCIBILITY.md), so the gathered trials are those of a local run. The caller's engine then finds all of them
finished, and writes what describes the whole: manifest, configuration, summary and report.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import logging
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from olrank import _core, _toml
from olrank._external import OnlineRanker, User, description_of, registered
from olrank.errors import Error, InvalidArgument
from olrank.settings import settings

_log = logging.getLogger("olrank")
_RETRIES = 3  # of a trial whose worker was lost
_LOOK_EVERY = 0.05  # seconds
_PROBE = "olrank-probe"
_PLACING = ".olrank-trial-"
_CALL = "olrank.run(…)"


class Executor(Protocol):
    """Anything with submit(function, argument) that returns a future with done(), result() and cancel()."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any: ...


@dataclass(frozen=True)
class Own:
    """Users and rankers of the caller's."""

    users: Mapping[str, User]
    rankers: Mapping[str, Callable[..., OnlineRanker]]
    # As the caller names their classes: a worker may name the module of a script otherwise.
    descriptions: Mapping[str, str]

    @staticmethod
    def of(users: Mapping[str, User], rankers: Mapping[str, Callable[..., OnlineRanker]]) -> Own:
        return Own(users, rankers, {name: description_of(thing) for name, thing in [*users.items(), *rankers.items()]})

    def registered(self) -> contextlib.AbstractContextManager[None]:
        return registered(self.users, self.rankers, self.descriptions)


@dataclass(frozen=True)
class Task:
    """One trial: an experiment of a ranker, a user, a fold and a seed."""

    trial: str  # "trials/pairrank/perfect/fold1/seed1"
    configuration: str
    own: Own
    files: Mapping[str, bytes] = field(default_factory=dict)  # of an earlier run, to continue from
    attempt: str = ""  # unique: Dask answers a task that it has seen before with what that one came to


@dataclass(frozen=True)
class Played:
    """What a task returns. Its `error` is the trial's own; what submit() or result() raise is about workers."""

    manifest: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    error: Exception | None = None


class Stopped(RuntimeError):
    """A signal to the worker stopped its trial."""


_one_at_a_time = threading.Lock()  # a process plays one experiment at a time, and workers may have several threads


def play_trial(task: Task) -> Played:
    """Runs in a worker."""
    warnings: list[str] = []

    def tell(line: str) -> None:
        event = json.loads(line)
        if event["event"] == "warning":
            warnings.append(event["message"])

    with _one_at_a_time, tempfile.TemporaryDirectory(prefix="olrank-trial-") as temporary:
        out = Path(temporary) / "run"
        _write(out, task.files)
        try:
            with task.own.registered():
                _, _, stopped_by = _core.play(task.configuration, "configuration", str(out), "resume", _CALL, tell)
        except Exception as error:
            return Played(warnings=warnings, error=_portable(error, out))
        if stopped_by != 0:
            raise Stopped(stopped_by)
        return Played((out / "manifest.json").read_bytes(), _read(out, "trials"), warnings)


def play(
    executor: Executor,
    table: Mapping[str, Any],
    text: str,
    origin: str,
    out: Path,
    earlier: str,
    own: Own,
    tell: Callable[[str], None],
) -> tuple[str, list[str], int]:
    """The same as _core.play(), on an executor."""
    for name, ranker in own.rankers.items():
        # Its pickled state is part of the result's fingerprint, and has the name of its module.
        if getattr(ranker.func if isinstance(ranker, functools.partial) else ranker, "__module__", "") == "__main__":
            raise InvalidArgument(
                f"Ranker '{name}' is defined in the script itself, which workers name otherwise: "
                "move its class into a module that they can import."
            )
    with own.registered():
        _check(table, origin, out, earlier)
    with _locked(out):
        if earlier == "replace":
            _remove_results(out)
        planned = _tasks_of(table, own)
        missing = [_continued(task, out) for task in planned if not _is_finished(out / task.trial, table)]
        try:
            _gather(executor, missing, _Gathered(out, [task.trial for task in planned], len(missing), tell))
        except KeyboardInterrupt:
            _log.warning("Stopped: finished trials are in %s. Run it again with resume=True to play the others.", out)
            raise
    # A trial that failed in a worker is tried once more here, which tells why.
    with own.registered():
        return _core.play(text, origin, str(out), "resume", _CALL, lambda _: None)


def _check(table: Mapping[str, Any], origin: str, out: Path, earlier: str) -> None:
    """Raises what a run in this folder would be refused for, and changes nothing.

    The engine makes all of its checks before it asks whether each user has a click probability for each grade of the
    data, and writes nothing before that. Here one more user has none.
    """
    clicks = dict(table.get("clicks", {}))
    clicks["models"] = [*_listed(clicks.get("models", _default("clicks", "models"))), _PROBE]
    users = [*_tables(table.get("user", [])), {"name": _PROBE, "kind": "dependent", "click": [0.5], "stop": [0.5]}]
    probed = _toml.write({**table, "clicks": clicks, "user": users})
    try:
        _core.play(probed, origin, str(out), earlier, _CALL, lambda _: None)
    except InvalidArgument as error:
        if f"'{_PROBE}'" not in str(error):
            raise
    else:
        raise Error(f"The data has no grade above 0, and '{out}' has trials of a user {_PROBE} now: remove it.")


class _Gathered:
    """The folder of results while trials come in, and what is told of them."""

    def __init__(self, out: Path, planned: list[str], missing: int, tell: Callable[[str], None]) -> None:
        self._out = out
        self._planned = planned
        self._finished = len(planned) - missing
        self._missing = missing
        self._tell = tell
        self._told: set[str] = set()
        self._started = time.monotonic()
        for left_by_a_killed_run in out.glob(f"{_PLACING}*"):
            shutil.rmtree(left_by_a_killed_run, ignore_errors=True)
        self._event("experiment_started", trials=len(planned))

    def add(self, task: Task, played: Played) -> None:
        self._describe(played.manifest)
        for trial in {str(Path(*Path(name).parts[:5])) for name in played.files}:
            self._place(trial, {name: data for name, data in played.files.items() if Path(name).is_relative_to(trial)})
        for message in played.warnings:
            if message not in self._told:
                self._told.add(message)
                self._event("warning", message=message)
        self._finished += 1
        self._show(task, played)

    def lost(self, task: Task, error: BaseException) -> None:
        self._event("warning", message=f"{task.trial} lost its worker and is played again: {type(error).__name__}: {error}")

    def _describe(self, manifest: bytes) -> None:
        """Makes the folder one that a second call continues, from the first trial on."""
        if (self._out / "manifest.json").exists():
            return
        described = json.loads(manifest)
        described |= {"trial_folders": self._planned, "trials": len(self._planned), "runs": []}
        _write_atomically(self._out / "manifest.json", json.dumps(described, indent=2, ensure_ascii=False).encode() + b"\n")

    def _place(self, trial: str, files: Mapping[str, bytes]) -> None:
        """All of a trial's files at once, so that none is there by halves."""
        with tempfile.TemporaryDirectory(prefix=_PLACING, dir=self._out) as temporary:
            _write(Path(temporary), files)
            target = self._out / trial
            if target.exists():
                shutil.rmtree(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(Path(temporary) / trial, target)

    def _show(self, task: Task, played: Played) -> None:
        _, ranker, user, _, seed = Path(task.trial).parts
        curve = played.files.get(f"{task.trial}/curve.jsonl", b"").splitlines()
        if curve:
            last = json.loads(curve[-1])
            trial = {"ranker": ranker, "clicks": user, "seed": int(seed.removeprefix("seed"))}
            self._event("evaluation", trial=trial, round=last["round"], offline=last["offline"])
        done = self._finished - (len(self._planned) - self._missing)
        left = (time.monotonic() - self._started) / done * (self._missing - done)
        trials = {"finished": self._finished, "total": len(self._planned)}
        self._event("progress", share=self._finished / len(self._planned), seconds_left=left, trials=trials)

    def _event(self, name: str, **values: Any) -> None:
        self._tell(json.dumps({"event": name, **values}))


def _gather(executor: Executor, tasks: Sequence[Task], gathered: _Gathered) -> None:
    """Plays the tasks, those of lost workers again. An error of a trial ends it, after what has finished by then."""
    waiting = list(tasks)
    running: list[tuple[Any, Task]] = []
    lost: Counter[str] = Counter()
    try:
        while waiting or running:
            while waiting:
                running.append((_submitted(executor, waiting[0]), waiting[0]))
                waiting.pop(0)
            ended: list[tuple[Any, Task]] = []
            still: list[tuple[Any, Task]] = []
            for one in running:
                (ended if one[0].done() else still).append(one)
            running = still
            if not ended:
                time.sleep(_LOOK_EVERY)
            errors: list[BaseException] = []
            for future, task in ended:
                try:
                    played = future.result()
                except Exception as error:
                    if isinstance(error, Stopped) and error.args == (signal.SIGINT,):
                        errors.append(KeyboardInterrupt())
                    elif lost[task.trial] == _RETRIES:
                        errors.append(Error(f"{task.trial} lost its worker {_RETRIES + 1} times, at last by {type(error).__name__}: {error}"))
                    else:
                        lost[task.trial] += 1
                        gathered.lost(task, error)
                        waiting.append(task)
                    continue
                if played.error is not None:
                    errors.append(played.error)
                else:
                    gathered.add(task, played)
            if errors:
                raise errors[0]
    finally:
        for future, _ in running:
            future.cancel()


def _submitted(executor: Executor, task: Task) -> Any:
    try:
        return executor.submit(play_trial, replace(task, attempt=uuid.uuid4().hex))
    except RuntimeError as error:  # also a BrokenExecutor
        raise Error(
            f"The executor takes no more trials ({type(error).__name__}: {error}). Continue with resume=True and another executor."
        ) from error


def _tasks_of(table: Mapping[str, Any], own: Own) -> list[Task]:
    """The trials of a configuration, in the order in which the engine plays them."""
    data, protocol, clicks = (dict(table.get(name, {})) for name in ("data", "protocol", "clicks"))
    run = dict(table.get("run", {}))
    run.pop("out", None)
    run |= {"jobs": 1, "threads": run.get("threads") or 1}
    tasks = []
    for fold in sorted(_numbers(data.get("folds", _default("data", "folds")))):
        for seed in sorted(_numbers(protocol.get("seeds", _default("protocol", "seeds")))):
            for ranker in _tables(table.get("ranker", [])) or [{}]:
                for user in _listed(clicks.get("models", _default("clicks", "models"))):
                    alone = {
                        **table,
                        "data": data | {"folds": [fold]},
                        "protocol": protocol | {"seeds": [seed]},
                        "clicks": clicks | {"models": [user]},
                        "run": run,
                        "ranker": [ranker],
                    }
                    name = ranker.get("name") or ranker.get("kind") or _default("ranker", "kind")
                    tasks.append(Task(f"trials/{name}/{user}/fold{fold}/seed{seed}", _toml.write(alone), own))
    return tasks


def _continued(task: Task, out: Path) -> Task:
    """With the files of a trial that an earlier run has left, of as many rounds as it may have."""
    files = _read(out, task.trial)
    if not files:
        return task
    return replace(task, files=files | {"manifest.json": (out / "manifest.json").read_bytes()})


def _is_finished(trial: Path, table: Mapping[str, Any]) -> bool:
    """False where only the engine knows."""
    rounds = table.get("protocol", {}).get("rounds")
    try:
        summary = json.loads((trial / "summary.json").read_text(encoding="utf-8"))
        return isinstance(rounds, int) and bool(summary["rounds"] >= rounds)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _remove_results(out: Path) -> None:
    """What force=True replaces: the trials that the manifest lists. _check() has refused to remove others."""
    try:
        listed = json.loads((out / "manifest.json").read_text(encoding="utf-8")).get("trial_folders", [])
    except FileNotFoundError:
        return
    for folder in listed:
        if len(Path(folder).parts) == 5 and Path(folder).parts[0] == "trials" and ".." not in Path(folder).parts:
            shutil.rmtree(out / folder, ignore_errors=True)
    for name in ("config.toml", "summary.csv", "report.html", "manifest.json"):
        (out / name).unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The engine's lock of a folder of results. A folder that stays empty is removed."""
    out.mkdir(parents=True, exist_ok=True)
    lock = out / ".olrank-lock"
    with lock.open("a", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"'{out}' is in use by another process. Wait until it ends, or choose another out.") from None
        except OSError:
            pass  # a file system without locks
        try:
            handle.truncate(0)
            handle.write(f"process {os.getpid()}")
            handle.flush()
            yield
        finally:
            lock.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                out.rmdir()


def _portable(error: Exception, out: Path) -> Exception:
    """An error of a trial as it can be sent: without the worker's folder, and with where a user or a ranker raised it."""
    if isinstance(error, Error):
        return type(error)(str(error).replace(f"{out}/", ""))
    error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return Error(f"{type(error).__name__}: {error}")
    return error


def _read(root: Path, below: str) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted((root / below).rglob("*")) if path.is_file()}


def _write(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)


def _write_atomically(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    os.replace(beside, path)


def _default(table: str, name: str) -> Any:
    return next(setting.default for setting in settings(table) if setting.name == name)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [value] if isinstance(value, Mapping) else list(value)


def _numbers(value: Any) -> set[int]:
    """1, [1, 2] or "1-3,5"."""
    numbers: set[int] = set()
    for one in value.split(",") if isinstance(value, str) else _listed(value):
        first, _, last = str(one).partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers
