"""Experiments on an executor: each task plays one trial, and its files are gathered into one folder.

A worker plays a shard of one trial in a temporary folder and returns what that holds, so that workers and the caller need
no common file system. The caller's engine checks and describes the folder before that, and in the end finds all trials
finished, and writes summary and report.
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
from olrank._external import Own
from olrank.errors import Error, InvalidArgument

_log = logging.getLogger("olrank")
_RETRIES = 3  # of a trial whose worker was lost
_LOOK_EVERY = 0.05  # seconds
_PLACING = ".olrank-trial-"
_CALL = "olrank.run(…)"


class Executor(Protocol):
    """Anything with submit(function, argument) that returns a future with done(), result() and cancel()."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any: ...


@dataclass(frozen=True)
class Task:
    """One trial of an experiment."""

    trial: str  # "trials/pairrank/perfect/fold1/seed1"
    shard: str  # that has this trial alone
    configuration: str
    own: Own
    files: Mapping[str, bytes] = field(default_factory=dict)  # of an earlier run, to continue from
    attempt: str = ""  # unique: Dask answers a task that it has seen before with what that one came to


@dataclass(frozen=True)
class Played:
    """A task returns this. Its `error` is the trial's own; what submit() or result() raise is about workers."""

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
                _, _, _, stopped_by = _core.play(task.configuration, "configuration", str(out), "resume", _CALL, tell, task.shard, True)
        except Exception as error:
            return Played(warnings=warnings, error=_portable(error, out))
        if stopped_by != 0:
            raise Stopped(stopped_by)
        return Played(_read(out, "trials"), warnings)


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
    """Plays as _core.play() does, on an executor."""
    for name, ranker in own.rankers.items():
        # Its pickled state is part of the result's fingerprint, and has the name of its module.
        if getattr(ranker.func if isinstance(ranker, functools.partial) else ranker, "__module__", "") == "__main__":
            raise InvalidArgument(
                f"Ranker '{name}' is defined in the script itself, which has another name in workers: "
                "move its class into a module that the workers can import."
            )
    with own.registered():
        _, trials, _, _ = _core.play(text, origin, str(out), earlier, _CALL, lambda _: None, "", False)
    _forget_last_run(out / "manifest.json")  # the last call below tells of it
    with _locked(out):
        run = {name: value for name, value in table.get("run", {}).items() if name != "out"}
        one_trial = _toml.write({**table, "run": run | {"jobs": 1, "threads": run.get("threads") or 1}})
        planned = [Task(trial, f"{number}/{len(trials)}", one_trial, own) for number, trial in enumerate(trials)]
        missing = [_continued(task, out) for task in planned if not _is_finished(out / task.trial, table)]
        try:
            _gather(executor, missing, _Gathered(out, len(planned), len(missing), tell))
        except KeyboardInterrupt:
            _log.warning("Stopped: finished trials are in %s. Run it again with resume=True to play the others.", out)
            raise
    # A trial that failed in a worker is tried once more here, which tells why.
    with own.registered():
        folder, _, failures, stopped_by = _core.play(text, origin, str(out), "resume", _CALL, lambda _: None, "", True)
    return folder, failures, stopped_by


class _Gathered:
    """The folder of results while trials come in, and what is told of them."""

    def __init__(self, out: Path, planned: int, missing: int, tell: Callable[[str], None]) -> None:
        self._out = out
        self._planned = planned
        self._finished = planned - missing
        self._missing = missing
        self._tell = tell
        self._told: set[str] = set()
        self._started = time.monotonic()
        for left_by_a_killed_run in out.glob(f"{_PLACING}*"):
            shutil.rmtree(left_by_a_killed_run, ignore_errors=True)
        self._event("experiment_started", trials=planned)

    def add(self, task: Task, played: Played) -> None:
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
        _, ranker, user, fold, seed = Path(task.trial).parts
        trial = {"ranker": ranker, "clicks": user, "fold": int(fold.removeprefix("fold")), "seed": int(seed.removeprefix("seed"))}
        known = len(task.files.get(f"{task.trial}/curve.jsonl", b"").splitlines())  # those of an earlier run were told then
        for line in played.files.get(f"{task.trial}/curve.jsonl", b"").splitlines()[known:]:
            one = json.loads(line)
            told = {part: one[part] for part in ("offline", "online", "metrics") if part in one}
            self._event("evaluation", trial=trial, round=one["round"], **told)
        done = self._finished - (self._planned - self._missing)
        left = (time.monotonic() - self._started) / done * (self._missing - done)
        trials = {"finished": self._finished, "total": self._planned}
        self._event("progress", share=self._finished / self._planned, seconds_left=left, trials=trials)

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
                running.append((_submitted(executor, waiting[0]), waiting.pop(0)))
            ended = [one for one in running if one[0].done()]
            running = [one for one in running if one not in ended]
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


def _continued(task: Task, out: Path) -> Task:
    """The task with the files that an earlier run has left of its trial, whatever rounds it has."""
    files = _read(out, task.trial)
    return replace(task, files=files | {"manifest.json": (out / "manifest.json").read_bytes()}) if files else task


def _is_finished(trial: Path, table: Mapping[str, Any]) -> bool:
    """False where only the engine knows."""
    rounds = table.get("protocol", {}).get("rounds")
    try:
        summary = json.loads((trial / "summary.json").read_text(encoding="utf-8"))
        return isinstance(rounds, int) and bool(summary["rounds"] >= rounds)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _forget_last_run(manifest: Path) -> None:
    described = json.loads(manifest.read_text(encoding="utf-8"))
    described["runs"] = described["runs"][:-1]
    beside = manifest.with_name(f".{manifest.name}.{os.getpid()}")
    beside.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(beside, manifest)


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
