"""A run of steps: their programs, their time, their results and files."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent  # the checkout, or the bundle's bin
SKIP_STATUS = 77  # the exit status of a skipped check
LEAST = 3.0  # no step starts with fewer seconds left
KEPT_LINES = 400  # of a command's output in the log

# A step: what it does, and its seconds of a whole run.
Steps = dict[str, tuple[Callable[["Step"], None], float]]


class Failed(Exception):
    """The step's check failed; the text says how."""


class OutOfTime(Failed):
    """A command was still running when its time was up."""


class Skipped(Exception):
    """The step is not possible on this machine; the text says why."""


def say(message: str) -> None:
    print(f"gpu-evidence: {message}", file=sys.stderr, flush=True)


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of the programs: a bundle's launcher passes their library path, which this Python must not use."""
    libraries = os.environ.get("OLRANK_LIBRARY_PATH")
    return {**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {}), **(more or {})}


def end_group(process: subprocess.Popen[str]) -> str:
    """Kills the program and its children; returns what it had printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a process that hangs in the driver survives even this
        return process.communicate(timeout=5)[0] or ""
    return ""


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def worst_outcome(steps: Sequence[dict]) -> str:
    found = {step["outcome"] for step in steps}
    return next((one for one in ("failed", "not finished") if one in found), "passed")


def verdict_lines(evidence: dict) -> list[str]:
    """The outcome of each step, its targets, and which of them it missed, for a terminal."""
    lines = []
    for step in evidence["steps"]:
        met = sum(check["ok"] is True for check in step["checks"])
        missed = [check for check in step["checks"] if check["ok"] is False]
        targets = f"{met} of {met + len(missed)} targets met" if met or missed else ""
        lines.append(f"{step['name']:<12} {step['outcome']:<12} {targets:<22} {step['seconds']:>6.1f} s  {step['reason']}".rstrip())
        for check in missed:
            measured = "–" if check["measured"] is None else f"{check['measured']:.4g}"
            lines.append(f"  {check['what']}: {measured}, not {'≤' if check['at_most'] else '≥'} {check['target']:.4g}")
    return lines + [f"{name:<12} not run" for name in evidence["not run"]]


class Programs:
    """The programs of a built tree or a bundle."""

    def __init__(self, folder: Path | None) -> None:
        places = [folder] if folder else [HERE / "build/bin", HERE]
        self.folder = next((place for place in places if (place / "olrank").exists()), places[0])

    def find(self, name: str) -> Path:
        for folder in (self.folder, self.folder / "tests", self.folder.parent / "tests"):
            if os.access(folder / name, os.X_OK) and (folder / name).is_file():
                return folder / name
        raise Skipped(f"{name} is not built")

    def sanitizer(self) -> Path:
        name, toolkit = "compute-sanitizer", Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")
        for folder in (self.folder.parent / name, HERE / ".deps" / name / "nvidia/cu13/bin", toolkit):
            if os.access(folder / name, os.X_OK):
                return folder / name
        if found := shutil.which(name):
            return Path(found)
        raise Skipped(f"{name} is not installed: `scripts/fetch-libtorch --sanitizer` fetches it, for bundles too")


class Step:
    """The measurements and checks of one step."""

    def __init__(self, run: Run, name: str, limit: float) -> None:
        self.run, self.name = run, name
        self.deadline = time.monotonic() + limit
        self.numbers: dict[str, object] = {}
        self.checks: list[dict[str, object]] = []

    def left(self, share: float = 1.0) -> float:
        return max(0.1, share * (self.deadline - time.monotonic()))

    @contextlib.contextmanager
    def started(self, words: Sequence[str], more: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """A running program, which is killed with its children if its time is up."""
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                   errors="replace", start_new_session=True, cwd=self.run.scratch, env=environment(more))
        try:
            yield process
        except subprocess.TimeoutExpired:
            self.run.log(self.name, words, "killed: out of time", end_group(process))
            raise OutOfTime(f"{Path(words[0]).name} was still running when the step's time was up") from None
        except BaseException:
            end_group(process)
            raise

    def command(self, arguments: Sequence[object], more: dict[str, str] | None = None) -> tuple[int, str]:
        """Returns exit status and output."""
        words = [str(argument) for argument in arguments]
        with self.started(words, more) as process:
            output, _ = process.communicate(timeout=self.left())
        self.run.log(self.name, words, f"exit {process.returncode}", output)
        return process.returncode, output

    def side_by_side(self, arguments: Sequence[object], varied: Sequence[tuple[Sequence[object], dict[str, str]]],
                     share: float) -> list[tuple[int | None, str]]:
        """Runs a program several times at once, with more arguments and environment for each; no status where time was up."""
        until = time.monotonic() + self.left(share)

        def finish(process: subprocess.Popen[str]) -> tuple[int | None, str]:
            try:
                output, _ = process.communicate(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                return None, end_group(process)
            return process.returncode, output

        all_words = [[*map(str, arguments), *map(str, more)] for more, _ in varied]
        with ThreadPoolExecutor(len(varied)) as pool, contextlib.ExitStack() as running:  # processes end before their threads
            processes = [running.enter_context(self.started(words, extra)) for words, (_, extra) in zip(all_words, varied)]
            found = list(pool.map(finish, processes))
        for words, (status, output) in zip(all_words, found):
            self.run.log(self.name, words, "killed: out of time" if status is None else f"exit {status}", output)
        return found

    def must(self, arguments: Sequence[object], more: dict[str, str] | None = None) -> str:
        status, output = self.command(arguments, more)
        if status == SKIP_STATUS:
            raise Skipped(last_line(output))
        if status != 0:
            raise Failed(f"{Path(str(arguments[0])).name} ended with {status}: {last_line(output)}")
        return output

    def interrupt(self, arguments: Sequence[object], ready: Callable[[], bool]) -> None:
        """Sends SIGTERM to the program once it is ready for that, and waits until it has ended."""
        words = [str(argument) for argument in arguments]
        with self.started(words) as process:
            while process.poll() is None and not ready():
                if time.monotonic() > self.deadline:
                    raise subprocess.TimeoutExpired(words, 0)
                time.sleep(0.002)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            output, _ = process.communicate(timeout=self.left())
        self.run.log(self.name, words, f"exit {process.returncode} after SIGTERM", output)
        if process.returncode != 128 + signal.SIGTERM:
            raise Failed(f"{Path(words[0]).name} ended with {process.returncode} before it could be stopped: {last_line(output)}")

    def target(self, what: str, measured: float | None, wanted: float, at_most: bool = True) -> None:
        """A speed target, which never fails the step. Rehearsals are not compared with targets; NaN misses."""
        known = measured is not None and math.isfinite(measured)
        met = known and (measured <= wanted if at_most else measured >= wanted)
        self.checks.append({"what": what, "measured": measured if known else None, "target": wanted, "at_most": at_most,
                            "ok": None if self.run.rehearse else met})

    def play(self, name: str, flags: Sequence[object], device: str | None = None, resume: bool = False) -> None:
        self.must(self.run.trial_command(name, flags, device, resume))

    def trial(self, name: str, flags: Sequence[object], device: str | None = None) -> dict:
        """Runs one trial and returns its summary."""
        start = time.monotonic()
        self.play(name, flags, device)
        (summary,) = self.run.summaries(name)
        return {**summary, "process_seconds": time.monotonic() - start}


class Run:
    """Runs the steps and writes the files."""

    def __init__(self, folder: Path, programs: Programs, rehearse: bool, budget: float, scratch: Path, order: Sequence[str],
                 of: dict, earlier: dict | None) -> None:
        self.order, self.of = order, of
        self.earlier: list[dict] = earlier["steps"] if earlier else []
        self.folder, self.programs, self.rehearse, self.scratch = folder, programs, rehearse, scratch
        self.deadline = time.monotonic() + budget
        self.started = earlier["started"] if earlier else datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.device = "cpu" if rehearse else "cuda"
        self.olrank = programs.find("olrank")
        self.results: list[dict] = []
        self.data_sets: dict[str, Path] = {}
        self.cards = 1

    def pick(self, real, rehearsed):
        return rehearsed if self.rehearse else real

    @property
    def tests(self) -> Path:
        """The program with the tests of the kernels and of the engine."""
        return self.programs.find(self.pick("cuda_test", "emulated_kernels_test"))

    def data(self, step: Step, real: str = "queries=600&test_queries=250") -> Path:
        """Generated data, made once for all trials that use them."""
        source = self.pick(real, "queries=30&test_queries=20")
        if source not in self.data_sets:
            folder = self.scratch / f"data{len(self.data_sets)}"
            step.must([self.olrank, "data", "synth", f"mslr-like?{source}", "--ending", ".olrank", "--out", folder, "--force"])
            self.data_sets[source] = folder
        return self.data_sets[source]

    def trial_command(self, name: str, flags: Sequence[object], device: str | None = None, resume: bool = False) -> list[object]:
        fixed = [] if "--seeds" in flags else ["--seeds", "1"]
        # The papers' networks, so that the figures of all commits compare.
        return [self.olrank, "run", "--protocol", "paper", "--fold", "1", "--clicks", "perfect", "--device", device or self.device,
                "--out", self.scratch / name, "--resume" if resume else "--force", "--quiet", *flags, *fixed]

    def summaries(self, name: str) -> list[dict]:
        """Reads the summaries of all trials of a run, in order of rankers and seeds."""
        found = [json.loads(path.read_text(encoding="utf-8")) for path in (self.scratch / name / "trials").rglob("summary.json")]
        return sorted(found, key=lambda one: (one.get("ranker", ""), one.get("seed", 0)))

    def run_step(self, name: str, body: Callable[[Step], None], seconds: float) -> None:
        """A step may take twice its seconds, if as many are left."""
        start = time.monotonic()
        limit = min(2.0 * seconds, self.deadline - start)
        step = Step(self, name, limit)
        outcome, reason = "passed", ""
        try:
            if limit < LEAST:
                raise Skipped("the time of all steps is used up")
            say(f"{name}, at most {limit:.0f} s: {body.__doc__}")
            body(step)
        except Skipped as skipped:
            outcome, reason = "skipped", str(skipped)
        except OutOfTime as slow:
            outcome, reason = "not finished", str(slow)
        except Failed as failed:
            outcome, reason = "failed", str(failed)
        except Exception as error:  # an unexpected error must not stop the other steps
            outcome, reason = "failed", f"{type(error).__name__}: {error}"
        if outcome != "passed":
            say(f"{name} {outcome}: {reason}")
        self.results.append({"name": name, "outcome": outcome, "reason": reason, "seconds": round(time.monotonic() - start, 3),
                             "limit": round(limit, 3), "numbers": step.numbers, "checks": step.checks})
        temporary = self.folder / ".evidence.json"
        temporary.write_text(json.dumps(self.evidence(), indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.folder / "evidence.json")

    def log(self, step: str, words: Sequence[str], ending: str, output: str) -> None:
        lines = output.splitlines()
        if len(lines) > KEPT_LINES:
            half = KEPT_LINES // 2
            lines = [*lines[:half], f"… {len(lines) - KEPT_LINES} lines omitted …", *lines[-half:]]
        with open(self.folder / "log.txt", "a", encoding="utf-8") as log:
            log.write("\n".join([f"== {step}: {' '.join(words)}", *lines, f"== {ending}", ""]) + "\n")

    def evidence(self) -> dict:
        """The results of this run and, where it has not run a step, of earlier ones."""
        again = {result["name"] for result in self.results}
        steps = sorted([one for one in self.earlier if one["name"] not in again] + self.results, key=lambda one: self.order.index(one["name"]))
        verdicts = [check["ok"] for step in steps for check in step["checks"]]
        return {"kind": "rehearsal" if self.rehearse else "evidence", "of": self.of, "started": self.started,
                "seconds": round(sum(step["seconds"] for step in steps), 3), "outcome": worst_outcome(steps),
                "targets": {"met": verdicts.count(True), "missed": verdicts.count(False)},
                "not run": [name for name in self.order if name not in {step["name"] for step in steps}], "steps": steps}
