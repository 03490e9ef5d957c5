"""The steps that pass or fail: the machine, parity, curves, determinism, the sanitizers."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from evidence.programs import Failed, OutOfTime, Skipped, last_line
from evidence.run import HEALTH, Step

CARD = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "power.limit",
        "temperature.gpu", "mig.mode.current", "compute_mode")
NEEDS_GPU = {"OLRANK_REQUIRE_GPU": "1"}
NEEDS_TWO_CARDS = "*EveryDeviceHasTheSameBits*"  # skipped on one


def machine(step: Step) -> None:
    """Card, driver, clocks, commit."""
    info = json.loads(step.must([step.run.olrank, "info", "--json"]))
    step.numbers.update(version=info["version"], commit=info["revision"], compiler=info["compiler"], libtorch=info["libtorch"]["version"],
                        cuda=info["cuda"]["runtime"], driver_serves=info["cuda"]["driver"], devices=info["cuda"]["devices"],
                        threads=info["threads"], system=platform.platform(), processor=processor())
    step.run.cards = len(info["cuda"]["devices"])
    if not shutil.which("nvidia-smi"):
        step.numbers["card"] = "nvidia-smi is not installed"
    else:
        used = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
        status, output = step.command(["nvidia-smi", "-i", used, f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"])
        step.numbers["card"] = dict(zip(CARD, [value.strip() for value in output.strip().splitlines()[0].split(",")])) if status == 0 else last_line(output)
    step.run.health_limit = step.limit  # the first process reads its libraries from the disk
    seconds = step.run.seconds_of_small_kernel()
    step.run.health_limit = max(HEALTH, 3.0 * (seconds or 0.0))
    if seconds is None:
        raise Failed("a small kernel does not run: see log.txt")
    step.numbers["seconds_of_small_kernel"] = seconds


def processor() -> str:
    with contextlib.suppress(OSError):
        found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
        if found:
            return found[1]
    return platform.machine()


def parity(step: Step) -> None:
    """Every kernel against the CPU's operation."""
    report = step.run.folder / "parity.json"
    report.unlink(missing_ok=True)
    chosen = step.run.pick("*", "*OptimizerStep*:*FloatTile*")
    some = [f"--gtest_filter={chosen}" + (f"-{NEEDS_TWO_CARDS}" if step.run.cards < 2 else "")]
    status, output = step.command([step.run.tests, *some, f"--gtest_output=json:{report}", "--gtest_brief=1"], NEEDS_GPU)
    if not report.exists():
        raise Failed(f"the tests ended with {status} before writing a report: {last_line(output)}")
    suites = json.loads(report.read_text(encoding="utf-8"))
    cases = [case for suite in suites["testsuites"] for case in suite["testsuite"]]
    failed = [f"{case['classname']}.{case['name']}" for case in cases if case.get("failures")]
    skipped = sum(case.get("result") == "SKIPPED" for case in cases)
    step.numbers.update(tests=len(cases), failed=failed, skipped=skipped)
    if failed or status != 0:
        raise Failed(f"{len(failed)} of {len(cases)} parity tests failed: {', '.join(failed[:5])}")
    if not cases or skipped:
        raise Failed(f"{skipped} of {len(cases)} parity tests skipped, but all of them must run")


# --- trials that must agree ---------------------------------------------------------------------


def small_trial(step: Step) -> list[object]:
    pick = step.run.pick
    return ["--ranker", "olranknet", "--covariance", "full", "--width", pick(32, 8), "--steps", pick(10, 2), "--rounds", pick(300, 12),
            "--protocol-eval-every", pick(30, 4), "--data", step.run.small_data(step)]


def curves(step: Step) -> None:
    """Plays a trial on the CPU and on the GPU, side by side."""
    found = []
    for name, device in (("curve-cpu", "cpu"), ("curve-device", step.run.device)):
        step.play(name, small_trial(step), device)
        (curve,) = (step.run.scratch / name / "trials").rglob("curve.jsonl")
        found.append([json.loads(line) for line in curve.read_text(encoding="utf-8").splitlines()])
    rows = [{"round": one["round"], "cpu": offline(one), "gpu": offline(other), "cpu_pairs": one["pairs"], "gpu_pairs": other["pairs"]}
            for one, other in zip(*found)]
    apart = [row["round"] for row in rows if row["cpu_pairs"] != row["gpu_pairs"]]
    step.numbers.update(curve=rows, first_round_apart=apart[0] if apart else None)
    if not rows or any(row["gpu"] != row["gpu"] for row in rows):
        raise Failed("a curve is empty or has a NaN")
    step.at_most("difference of offline NDCG@10 at the end", abs(rows[-1]["cpu"] - rows[-1]["gpu"]), 0.05)


def offline(point: dict) -> float:
    return next(iter(point["offline"].values()))


def determinism(step: Step) -> None:
    """Bits stay equal in a second run, with 16 jobs, after an interruption, and across the two forms."""
    differ = []
    for case in (in_a_second_run, with_many_jobs, after_an_interruption, across_the_forms):
        name = case.__name__.replace("_", " ")
        prints = case(step)
        step.numbers[name] = prints
        if len(set(prints.values())) != 1:
            differ.append(f"{name}: {', '.join(f'{what} {value}' for what, value in prints.items())}")
    if differ:
        raise Failed(f"results differ {'; '.join(differ)}")


def prints_of(step: Step, name: str) -> str:
    """The fingerprints of all trials of a run, as one text."""
    return " ".join(one["result_fingerprint"] for one in step.run.summaries(name))


def in_a_second_run(step: Step) -> dict[str, str]:
    for name in ("first", "second"):
        step.play(name, small_trial(step))
    return {name: prints_of(step, name) for name in ("first", "second")}


def with_many_jobs(step: Step) -> dict[str, str]:
    """Trials side by side also record their graphs beside each other's work."""
    count = step.run.pick(16, 2)
    seeds = ["--seeds", f"1-{count}"]
    for jobs in (1, count):
        step.play(f"jobs-{jobs}", [*small_trial(step), *seeds, "--jobs", jobs])
        if len(step.run.summaries(f"jobs-{jobs}")) != count:
            raise Failed(f"--jobs {jobs} did not finish {count} trials")
    return {f"{jobs} jobs": prints_of(step, f"jobs-{jobs}") for jobs in (1, count)}


def after_an_interruption(step: Step) -> dict[str, str]:
    pick = step.run.pick
    flags = [*small_trial(step), "--rounds", pick(3000, 500), "--protocol-eval-every", pick(30, 5)]
    step.play("whole", flags)

    def has_begun() -> bool:
        curves = list((step.run.scratch / "stopped").rglob("curve.jsonl"))
        return bool(curves) and curves[0].read_bytes().count(b"\n") >= 3

    step.interrupt(step.run.trial_command("stopped", flags), has_begun)
    if step.run.summaries("stopped"):
        raise Failed("the trial had finished before it was interrupted")
    step.play("stopped", flags, resume=True)
    return {"whole": prints_of(step, "whole"), "interrupted and resumed": prints_of(step, "stopped")}


def across_the_forms(step: Step) -> dict[str, str]:
    """A trial that begins in dual form and goes on in primal form."""
    pick = step.run.pick
    flags = [*small_trial(step), "--width", pick(8, 2), "--rounds", pick(1500, 300), "--protocol-eval-every", pick(500, 100)]
    for name, form in (("forms-1", "auto"), ("forms-2", "auto"), ("dual", "dual")):
        step.play(name, [*flags, "--form", form])
    memory = {name: step.run.summary(name)["last"].get("posterior_bytes") for name in ("forms-1", "dual")}
    if memory["forms-1"] == memory["dual"]:
        raise Failed(f"the covariance did not change from the dual form to the primal one: {memory['dual']} bytes in either")
    return {name: prints_of(step, name) for name in ("forms-1", "forms-2")}


# --- sanitizers ---------------------------------------------------------------------------------

ERRORS_FOUND = 9  # exit status
# Kernels alone, then the engine with its graphs and streams. Of each, what tests pass and what a rehearsal runs of them.
PARTS = {"kernels": ("*KernelTest*", "*OptimizerStep*"), "engine": ("-*KernelTest*", "*StackedTrainer*")}


PROCESSES = 12  # at once: a tool works on one core for each, and every process needs memory of its own
# initcheck says this of copies to the host whose source was not all written, such as padding: they are counted apart.
COPIES = "Host API uninitialized memory access"
ERROR = re.compile(rf"^=+ (?!.*({COPIES}|on access by)).*(Invalid|hazard|Barrier|Uninitialized|Error)", re.M | re.I)


def sanitize(tool: str) -> Callable[[Step], None]:
    def check(step: Step) -> None:
        wrapper = [] if step.run.rehearse else sanitizer_command(step, tool)
        count = step.run.pick(max(1, min(PROCESSES, 3 * (os.cpu_count() or 1) // 4)), 2)
        unfinished = []
        for number, (part, (real, rehearsed)) in enumerate(PARTS.items(), 1):
            tests = [step.run.tests, f"--gtest_filter={step.run.pick(real, rehearsed)}"]
            # Processes of one machine listen at ports of their own.
            varied = [([*(["--port", 49152 + 20 * index] if wrapper else []), *tests],
                       {**NEEDS_GPU, "GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(index)}) for index in range(count)]
            found = step.side_by_side(wrapper or ["env"], varied, share=1.0 / (len(PARTS) + 1 - number))
            outputs = [output for _, output in found]
            passed = sum(output.count("[       OK ]") for output in outputs)
            late = sum(status is None for status, _ in found)
            errors = sum(errors_found(tool, status, output) for status, output in found if status is not None) if wrapper else 0
            copies = sum(output.count(COPIES) for output in outputs)
            step.numbers[part] = {"errors": errors - copies, "copies of unwritten memory to the host": copies, "tests passed": passed,
                                  "processes": count, "processes that did not finish": late}
            if errors > copies or any(status not in (0, None, *([ERRORS_FOUND] if copies else [])) for status, _ in found):
                raise Failed(f"{tool}, {part}: {errors - copies} errors, exits {[status for status, _ in found]}: see log.txt")
            if any(status is None and ERROR.search(output) for status, output in found):
                raise Failed(f"{tool}, {part}: errors found, and time was up: see log.txt")
            if late:
                unfinished.append(f"{part} ({passed} tests passed)")
        if unfinished:
            raise OutOfTime(f"no error was found, but the tests of {' and '.join(unfinished)} did not all finish in the step's time: "
                            f"`--only {tool}` gives it more")

    check.__doc__ = f"compute-sanitizer's {tool} over the tests of kernels and engine."
    return check


def sanitizer_command(step: Step, tool: str) -> Sequence[object]:
    sanitizer = step.run.programs.sanitizer()
    # A graph that cannot be updated is instantiated again, which memcheck would count as an error of the interface.
    own = {"memcheck": ["--leak-check=no", "--report-api-errors=no"]}.get(tool, [])
    most = 0 if tool == "initcheck" else 20  # all of them, to count those of copies
    return [sanitizer, f"--tool={tool}", f"--error-exitcode={ERRORS_FOUND}", f"--print-limit={most}", *injection_flags(sanitizer), *own]


def errors_found(tool: str, status: int, output: str) -> int:
    if found := re.search(r"Device not supported|Failed to initialize|Unable to find injection|LibraryNotLoaded", output):
        raise Skipped(f"compute-sanitizer does not work on this machine: {found[0]}")
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", output)
    if summary is None:
        raise Failed(f"{tool} ended with {status} without a summary: {last_line(output)}")
    return int(summary[1])


def injection_flags(sanitizer: Path) -> list[str]:
    """The wheel has its libraries in a folder next to the program's; a toolkit's program finds its own."""
    own = sanitizer.resolve().parent
    for folder in (own, own.parent / "lib"):
        if list(folder.glob("libInterceptorInjection*")):
            return [f"--injection-path={folder}"]
    return []
