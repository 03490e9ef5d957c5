"""A run of steps: their time, their commands, their results and files."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evidence.programs import SKIP_STATUS, Failed, OutOfTime, Programs, Skipped, end_group, environment, last_line

LEAST = 3.0  # no step starts with fewer seconds left
KEPT_LINES = 400  # of a command's output in the log
HEALTH = 2.0  # seconds that a small kernel may take to be started and checked, process and all
PAUSE = 2.0  # seconds before a second try: what was killed may have held much memory

# A step: what it does, and its seconds of a whole run.
Steps = dict[str, tuple[Callable[["Step"], None], float]]


def summary_of(body: Callable[[Step], None]) -> str:
    return (body.__doc__ or "").strip()


def say(message: str) -> None:
    print(f"gpu-evidence: {message}", file=sys.stderr, flush=True)


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
        lines += [f"  {check['what']}: {short(check['measured'])}, not {'≤' if check['at_most'] else '≥'} {short(check['target'])}" for check in missed]
    return lines + [f"{name:<12} not run" for name in evidence["not run"]]


def short(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


class Step:
    """The measurements and checks of one step."""

    def __init__(self, run: Run, name: str, limit: float) -> None:
        self.run, self.name, self.limit = run, name, limit
        self.deadline = time.monotonic() + limit
        self.numbers: dict[str, object] = {}
        self.checks: list[dict[str, object]] = []

    @contextlib.contextmanager
    def started(self, words: Sequence[str], more: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """A running program, which is killed with its children if its time is up."""
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                   errors="replace", start_new_session=True, cwd=self.run.scratch, env=environment(more))
        try:
            yield process
        except subprocess.TimeoutExpired:
            output = end_group(process)
            self.run.log(self.name, words, "killed: out of time", output)
            raise OutOfTime(f"{Path(words[0]).name} was still running when the step's time was up") from None
        except BaseException:
            end_group(process)
            raise

    def command(self, arguments: Sequence[object], more: dict[str, str] | None = None, share: float = 1.0) -> tuple[int, str]:
        """Returns exit status and output. The program may take this share of the step's time that is left."""
        words = [str(argument) for argument in arguments]
        with self.started(words, more) as process:
            output, _ = process.communicate(timeout=max(0.1, share * (self.deadline - time.monotonic())))
        self.run.log(self.name, words, f"exit {process.returncode}", output)
        return process.returncode, output

    def side_by_side(self, arguments: Sequence[object], varied: Sequence[tuple[Sequence[object], dict[str, str]]],
                     share: float) -> list[tuple[int | None, str]]:
        """Runs a program several times at once, with more arguments and environment for each; no status where time was up."""
        until = time.monotonic() + share * (self.deadline - time.monotonic())

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
                    raise subprocess.TimeoutExpired(words, self.limit)
                time.sleep(0.002)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            output, _ = process.communicate(timeout=max(0.1, self.deadline - time.monotonic()))
        self.run.log(self.name, words, f"exit {process.returncode} after SIGTERM", output)
        if process.returncode != 128 + signal.SIGTERM:
            raise Failed(f"{Path(words[0]).name} ended with {process.returncode} before it could be stopped: {last_line(output)}")

    def target(self, what: str, measured: float | None, wanted: float, at_most: bool) -> None:
        """A speed target, which never fails the step. Rehearsals are not compared with targets; NaN misses."""
        known = measured is not None and math.isfinite(measured)
        met = known and (measured <= wanted if at_most else measured >= wanted)
        self.checks.append({"what": what, "measured": measured if known else None, "target": wanted, "at_most": at_most,
                            "ok": None if self.run.rehearse else met})

    def at_most(self, what: str, measured: float, wanted: float) -> None:
        self.target(what, measured, wanted, True)

    def at_least(self, what: str, measured: float, wanted: float) -> None:
        self.target(what, measured, wanted, False)

    # Trials.

    def play(self, name: str, flags: Sequence[object], device: str | None = None, resume: bool = False) -> None:
        self.must(self.run.trial_command(name, flags, device, resume))

    def trial(self, name: str, flags: Sequence[object], device: str | None = None) -> dict:
        """Runs one trial and returns its summary."""
        start = time.monotonic()
        self.play(name, flags, device)
        return {**self.run.summary(name), "process_seconds": time.monotonic() - start}


class Run:
    """Runs the steps and writes the files."""

    def __init__(self, folder: Path, programs: Programs, rehearse: bool, budget: float, scratch: Path, order: Sequence[str],
                 of: dict | None = None, earlier: dict | None = None) -> None:
        self.order, self.of = order, of or {}
        self.earlier: list[dict] = earlier["steps"] if earlier else []
        self.folder, self.programs, self.rehearse, self.scratch = folder, programs, rehearse, scratch
        self.begin = time.monotonic()
        self.deadline = self.begin + budget
        self.budget = budget
        self.started = earlier["started"] if earlier else datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.device = "cpu" if rehearse else "cuda"
        self.olrank = programs.find("olrank")
        self.results: list[dict] = []
        self.data_sets: dict[str, Path] = {}
        self.cards = 1
        self.health_limit = HEALTH
        self.lost = ""  # why no further step may start

    def elapsed(self) -> float:
        return time.monotonic() - self.begin

    def pick(self, real, rehearsed):
        return rehearsed if self.rehearse else real

    @property
    def tests(self) -> Path:
        """The program with the tests of the kernels and of the engine."""
        return self.programs.find(self.pick("cuda_test", "emulated_kernels_test"))

    @property
    def bench(self) -> Path:
        return self.programs.find(self.pick("device_bench", "emulated_device_bench"))

    # Data, made once for all trials that use them.

    def data(self, step: Step, real: str) -> Path:
        source = self.pick(real, "queries=30&test_queries=20")
        if source not in self.data_sets:
            folder = self.scratch / f"data{len(self.data_sets)}"
            step.must([self.olrank, "data", "synth", f"mslr-like?{source}", "--ending", ".olrank", "--out", folder, "--force"])
            self.data_sets[source] = folder
        return self.data_sets[source]

    def large_data(self, step: Step) -> Path:
        return self.data(step, "queries=6000&test_queries=2000")

    def small_data(self, step: Step) -> Path:
        return self.data(step, "queries=600&test_queries=250")

    def trial_command(self, name: str, flags: Sequence[object], device: str | None = None, resume: bool = False) -> list[object]:
        fixed = [] if "--seeds" in flags else ["--seeds", "1"]
        # The papers' networks, so that the figures of all commits compare.
        return [self.olrank, "run", "--protocol", "paper", "--fold", "1", "--clicks", "perfect", "--device", device or self.device,
                "--out", self.scratch / name, "--resume" if resume else "--force", "--quiet", *flags, *fixed]

    def summaries(self, name: str) -> list[dict]:
        """Reads the summaries of all trials of a run, in order of rankers and seeds."""
        found = [json.loads(path.read_text(encoding="utf-8")) for path in (self.scratch / name / "trials").rglob("summary.json")]
        return sorted(found, key=lambda one: (one.get("ranker", ""), one.get("seed", 0)))

    def summary(self, name: str) -> dict:
        found = self.summaries(name)
        if len(found) != 1:
            raise Failed(f"the run left {len(found)} summaries, not one")
        return found[0]

    # Steps.

    def limit_of(self, steps: Steps, chosen: Sequence[str], name: str) -> float:
        """Each step may use its part of the budget, and what earlier ones have left of theirs up to twice its own part."""
        scale = self.budget / sum(steps[one][1] for one in chosen)
        later = chosen[chosen.index(name) + 1 :]
        left = self.deadline - time.monotonic()
        return min(2.0 * scale * steps[name][1], left - scale * sum(steps[one][1] for one in later))

    def run_steps(self, steps: Steps, chosen: Sequence[str]) -> None:
        for name in chosen:
            self.run_step(name, steps[name][0], self.limit_of(steps, chosen, name))

    def run_step(self, name: str, body: Callable[[Step], None], limit: float) -> None:
        step = Step(self, name, limit)
        start = time.monotonic()
        outcome, reason = "passed", ""
        try:
            if self.lost:
                raise Skipped(self.lost)
            if limit < LEAST:
                raise Skipped("the time of all steps is used up")
            say(f"{name}, at most {limit:.0f} s: {summary_of(body)}")
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
        if outcome in ("failed", "not finished") and not self.is_healthy():
            self.lost = f"the device no longer runs a small kernel in {self.health_limit:.1f} s, since the step {name}"
            say(self.lost)
        self.write()

    def is_healthy(self) -> bool:
        """Whether the device still computes, which it may not after a crash."""
        for pause in (0.0, PAUSE):
            time.sleep(pause)
            if self.seconds_of_small_kernel() is not None:
                return True
        return False

    def seconds_of_small_kernel(self) -> float | None:
        """Times a process that checks a small kernel; none if it fails or takes too long. Programs without tests pass."""
        with contextlib.suppress(Skipped):
            step = Step(self, "health", self.health_limit)
            start = time.monotonic()
            try:
                status, _ = step.command([self.tests, "--gtest_filter=*OptimizerStep*", "--gtest_brief=1"], {"OLRANK_REQUIRE_GPU": "1"})
            except OutOfTime:
                return None
            return time.monotonic() - start if status == 0 else None
        return 0.0

    # Files.

    def log(self, step: str, words: Sequence[str], ending: str, output: str) -> None:
        lines = output.splitlines()
        omitted = [f"… {len(lines) - KEPT_LINES} lines omitted …"] if len(lines) > KEPT_LINES else []
        kept = lines[: KEPT_LINES // 2] + omitted + lines[-KEPT_LINES // 2 :] if omitted else lines
        with open(self.folder / "log.txt", "a", encoding="utf-8") as log:
            log.write("\n".join([f"== {step}: {' '.join(words)}", *kept, f"== {ending}", ""]) + "\n")

    def step_results(self) -> list[dict]:
        """Returns the results of this run and, where it has not run a step, of earlier ones."""
        again = {result["name"] for result in self.results}
        shown = [one for one in self.earlier if one["name"] not in again]
        return sorted(shown + self.results, key=lambda one: self.order.index(one["name"]))

    def evidence(self) -> dict:
        steps = self.step_results()
        verdicts = [check["ok"] for step in steps for check in step["checks"]]
        return {"kind": "rehearsal" if self.rehearse else "evidence", "of": self.of, "started": self.started,
                "seconds": round(sum(step["seconds"] for step in steps), 3),
                "outcome": worst_outcome(steps),
                "targets": {"met": verdicts.count(True), "missed": verdicts.count(False)},
                "not run": [name for name in self.order if name not in {step["name"] for step in steps}],
                "steps": steps}

    def write(self) -> None:
        temporary = self.folder / ".evidence.json"
        temporary.write_text(json.dumps(self.evidence(), indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.folder / "evidence.json")
