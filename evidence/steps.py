"""The steps of scripts/gpu-evidence. Checks pass or fail; a missed target of a measurement fails nothing."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from evidence.run import SKIP_STATUS, Failed, OutOfTime, Skipped, Step, last_line

CARD = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "power.limit",
        "temperature.gpu", "mig.mode.current", "compute_mode")
NEEDS_GPU = {"OLRANK_REQUIRE_GPU": "1"}
NEEDS_TWO_CARDS = "*EveryDeviceHasTheSameBits*"  # skipped on one
HOST_STAGES = {"rank", "click", "eval", "save"}  # all others are GPU time


def machine(step: Step) -> None:
    """Card, driver, clocks, commit."""
    info = json.loads(step.must([step.run.olrank, "info", "--json"]))
    names = re.findall(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    step.numbers.update(version=info["version"], commit=info["revision"], compiler=info["compiler"], libtorch=info["libtorch"]["version"],
                        cuda=info["cuda"]["runtime"], driver_serves=info["cuda"]["driver"], devices=info["cuda"]["devices"],
                        threads=info["threads"], system=platform.platform(), processor=(names or [platform.machine()])[0])
    step.run.cards = len(info["cuda"]["devices"])
    if not shutil.which("nvidia-smi"):
        step.numbers["card"] = "nvidia-smi is not installed"
        return
    used = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    status, output = step.command(["nvidia-smi", "-i", used, f"--query-gpu={','.join(CARD)}", "--format=csv,noheader"])
    step.numbers["card"] = dict(zip(CARD, [value.strip() for value in output.strip().splitlines()[0].split(",")])) if status == 0 else last_line(output)


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
            "--protocol-eval-every", pick(30, 4), "--data", step.run.data(step)]


def curves(step: Step) -> None:
    """Plays a trial on the CPU and on the GPU, side by side."""
    found = []
    for name, device in (("curve-cpu", "cpu"), ("curve-device", step.run.device)):
        step.play(name, small_trial(step), device)
        (curve,) = (step.run.scratch / name / "trials").rglob("curve.jsonl")
        found.append([json.loads(line) for line in curve.read_text(encoding="utf-8").splitlines()])
    rows = [{"round": one["round"], "cpu": next(iter(one["offline"].values())), "gpu": next(iter(other["offline"].values())),
             "cpu_pairs": one["pairs"], "gpu_pairs": other["pairs"]} for one, other in zip(*found)]
    apart = [row["round"] for row in rows if row["cpu_pairs"] != row["gpu_pairs"]]
    step.numbers.update(curve=rows, first_round_apart=apart[0] if apart else None)
    if not rows or any(row["gpu"] != row["gpu"] for row in rows):
        raise Failed("a curve is empty or has a NaN")
    step.target("difference of offline NDCG@10 at the end", abs(rows[-1]["cpu"] - rows[-1]["gpu"]), 0.05)


def determinism(step: Step) -> None:
    """Bits stay equal in a second run, with 16 jobs, after an interruption, and across the two forms."""
    differ = []
    for case in (in_a_second_run, with_many_jobs, after_an_interruption, across_the_forms):
        name = case.__name__.replace("_", " ")
        prints = {run: " ".join(one["result_fingerprint"] for one in step.run.summaries(run)) for run in case(step)}
        step.numbers[name] = prints
        if len(set(prints.values())) != 1:
            differ.append(f"{name}: {', '.join(f'{what} {value}' for what, value in prints.items())}")
    if differ:
        raise Failed(f"results differ {'; '.join(differ)}")


def in_a_second_run(step: Step) -> Sequence[str]:
    for name in ("first", "second"):
        step.play(name, small_trial(step))
    return "first", "second"


def with_many_jobs(step: Step) -> Sequence[str]:
    """Trials side by side also record their graphs beside each other's work."""
    count = step.run.pick(16, 2)
    names = [f"jobs-{jobs}" for jobs in (1, count)]
    for name in names:
        step.play(name, [*small_trial(step), "--seeds", f"1-{count}", "--jobs", name.removeprefix("jobs-")])
        if len(step.run.summaries(name)) != count:
            raise Failed(f"{name} did not finish {count} trials")
    return names


def after_an_interruption(step: Step) -> Sequence[str]:
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
    return "whole", "stopped"


def across_the_forms(step: Step) -> Sequence[str]:
    """A trial that begins in dual form and goes on in primal form."""
    pick = step.run.pick
    flags = [*small_trial(step), "--width", pick(8, 2), "--rounds", pick(1500, 300), "--protocol-eval-every", pick(500, 100)]
    for name, form in (("forms-1", "auto"), ("forms-2", "auto"), ("dual", "dual")):
        step.play(name, [*flags, "--form", form])
    memory = {name: step.run.summaries(name)[0]["last"].get("posterior_bytes") for name in ("forms-1", "dual")}
    if memory["forms-1"] == memory["dual"]:
        raise Failed(f"the covariance did not change from the dual form to the primal one: {memory['dual']} bytes in either")
    return "forms-1", "forms-2"


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
    # The wheel has its libraries in a folder next to the program's; a toolkit's program finds its own.
    here = sanitizer.resolve().parent
    injected = [f"--injection-path={folder}" for folder in (here, here.parent / "lib") if list(folder.glob("libInterceptorInjection*"))]
    return [sanitizer, f"--tool={tool}", f"--error-exitcode={ERRORS_FOUND}", f"--print-limit={most}", *injected[:1], *own]


def errors_found(tool: str, status: int, output: str) -> int:
    if found := re.search(r"Device not supported|Failed to initialize|Unable to find injection|LibraryNotLoaded", output):
        raise Skipped(f"compute-sanitizer does not work on this machine: {found[0]}")
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", output)
    if summary is None:
        raise Failed(f"{tool} ended with {status} without a summary: {last_line(output)}")
    return int(summary[1])


# --- measurements -------------------------------------------------------------------------------


# Operations that are done in more than one way, up to where their names become ambiguous.
VARIANTS = ("training/step", "persistent_training/", "inverse_factor/", "tangent_kernel/query_kernels", "widths/full")


def bench(step: Step) -> None:
    """Every kernel compared with its ceiling and with LibTorch."""
    measure_operations(step, "device_bench.json")


def variants(step: Step) -> None:
    """The ways of one operation in turns, A B A B, as a card's rates fall while it is hot."""
    measure_operations(step, "variants.json", "--ab", *(word for name in VARIANTS for word in ("--only", name)))


def measure_operations(step: Step, name: str, *flags: str) -> None:
    report = step.run.folder / name
    report.unlink(missing_ok=True)
    program = step.run.programs.find(step.run.pick("device_bench", "emulated_device_bench"))
    try:
        status, output = step.command([program, *flags, "--json", report])
    finally:
        if report.exists():  # keep what was measured before a hang
            take_rows(step, json.loads(report.read_text(encoding="utf-8")))
    if status == SKIP_STATUS:
        raise Skipped(last_line(output))
    if status != 0:
        complaints = [line for line in output.splitlines() if line.startswith("device_bench: ")]
        raise Failed(f"device_bench ended with {status}: {'; '.join(complaints[:3]) or last_line(output)}")


def take_rows(step: Step, found: dict) -> None:
    step.numbers.update(ceilings=found["ceilings"], rows=found["measurements"])
    for row in found["measurements"]:
        identity = " ".join([row["name"], *(f"{key}={value}" for key, value in row["parameters"].items())])
        for verdict in row["targets"]:
            step.target(f"{identity}: {verdict['what']}", verdict["measured"], verdict["target"], verdict["at_most"])
    for name, value in found.get("ceilings_at_end", {}).items():  # a hot device may be slower
        step.target(f"{name} after the operations, over its first measurement", value / max(found["ceilings"][name], 1e-9), 0.97, at_most=False)


def sizes(step: Step, rounds: int, rehearsed: int) -> list[object]:
    pick = step.run.pick
    return ["--width", pick(100, 8), "--steps", pick(20, 2), "--rounds", pick(rounds, rehearsed)]


def measured(step: Step, name: str, flags: Sequence[object]) -> float:
    """The seconds of a trial. Its seconds are wall-clock time; the GPU is idle in what no stage of its own accounts for."""
    summary = step.trial(re.sub("[ ,=]+", "-", name), flags)
    keys = ("seconds", "process_seconds", "rounds_per_second", "seconds_by_stage", "peak_memory_bytes", "parameters", "result_fingerprint")
    on_device = sum(seconds for stage, seconds in summary.get("seconds_by_stage", {}).items() if stage not in HOST_STAGES)
    step.numbers[name] = {**{key: summary.get(key) for key in keys}, "idle_share": 1.0 - on_device / max(summary["seconds"], 1e-9),
                          **{key: summary["last"].get(key) for key in ("pairs", "posterior_bytes", "device_bytes")}}
    return max(summary["seconds"], 1e-9)


def trials(step: Step) -> None:
    """Trials of the paper's size, twice for their spread: full and diagonal covariance, and a recorded graph in place of the one kernel."""
    flags = ["--ranker", "olranknet", *sizes(step, 5000, 20), "--protocol-eval-every", step.run.pick(100, 10),
             "--data", step.run.data(step, "queries=6000&test_queries=2000"), "--covariance"]
    seconds: dict[str, list[float]] = {"full": [], "diagonal": []}
    for number in (1, 2):
        for covariance, found in seconds.items():
            found.append(measured(step, f"{covariance} {number}", [*flags, covariance]))
    for covariance, found in seconds.items():
        step.numbers[f"spread of {covariance}"] = max(found) / min(found) - 1.0
    full = sum(seconds["full"])
    step.target("seconds of a trial, full covariance, T = 5000, the slower of two", max(seconds["full"]), 4.0)
    step.target("full over diagonal", full / sum(seconds["diagonal"]), 1.2)
    measured(step, "two hidden layers", [*flags, "full", "--depth", "3"])
    recorded = measured(step, "recorded", [*flags, "full", "--training-kernel", "recorded"])
    step.target("training in one kernel over a recorded graph, whole trials", full / 2.0 / recorded, 1.0)


def covariances(step: Step) -> None:
    """Trials that train on growth, over those that train in every round, both with exact widths."""
    pick = step.run.pick
    flags = ["--ranker", "olranknet", *sizes(step, 1000, 20), "--protocol-eval-every", pick(100, 10),
             "--data", step.run.data(step, "queries=6000&test_queries=2000"), "--covariance", "full"]
    every = measured(step, "every round, full", flags)
    growth = measured(step, "growth, full", [*flags, "--retrain", "growth", "--replay-steps", pick(4, 1), "--replay-pairs", pick(256, 16)])
    step.numbers["growth, full over every round, full"] = growth / every


def measured_stages(step: Step, name: str, flags: Sequence[object]) -> dict[str, dict[str, float]]:
    """Median seconds by stage, by what is measured and n."""
    report = step.run.scratch / f"{name}.json"
    pick = step.run.pick
    on_device = [] if step.run.rehearse else ["--device", step.run.device]
    step.must([step.run.olrank, "bench", "round", "--docs", pick(125, 20), "--width", pick(100, 8), "--rounds", pick(101, 3), *flags, *on_device,
               "--json", report])
    found: dict[str, dict[str, float]] = {}
    for one in json.loads(report.read_text(encoding="utf-8"))["measurements"]:
        _, structure, stage = one["name"].split("/")
        found.setdefault(f"{structure} n={one['parameters']['n']}", {})[stage] = one["seconds"]["median"]
    step.numbers.update(found)
    return found


def rounds(step: Step) -> None:
    """A round in the middle of a trial, of the full covariance and of ten members."""
    pick = step.run.pick
    pairs = pick((1000, 10_000), (40, 80))
    found = measured_stages(step, "full", ["--structure", "full", "--pairs", ",".join(map(str, pairs))])
    for n, wanted in zip(pairs, (0.5, 1.5)):
        stages = found[f"full n={n}"]
        step.target(f"milliseconds of a round at n = {n}", 1e3 * stages["total"], wanted)
        if "idle" in stages:
            step.target(f"share of a round at n = {n} in which the GPU is idle", stages["idle"] / max(stages["total"], 1e-9), 0.1)
    measured_stages(step, "members", ["--structure", pick("ensemble-10", "ensemble-2"), "--pairs", pick("100,1000,10000", "10,40")])


def members(step: Step) -> None:
    """Ten members compared with one."""
    flags = ["--ranker", "p2neurrank", *sizes(step, 1000, 10), "--data", step.run.data(step), "--members"]
    one, ten = (measured(step, f"N={count}", [*flags, count]) for count in (1, 10))
    step.target("a trial of N = 10 over one of N = 1, T = 1000", ten / one, 3.0)


def jobs(step: Step) -> None:
    """Sixteen trials at once compared with one."""
    pick = step.run.pick
    count, played = pick(16, 2), pick(1000, 10)
    data = step.run.data(step)  # not on the clock

    def wall(name: str, seeds: str, at_once: int, rounds_played: int) -> float:
        start = time.monotonic()
        step.play(name, ["--ranker", "olranknet", "--covariance", "full", "--width", pick(100, 8), "--rounds", rounds_played, "--seeds", seeds,
                         "--jobs", at_once, "--data", data])
        return time.monotonic() - start

    empty = wall("jobs-none", "1", 1, 1)  # loading and starting
    one, every = wall("jobs-one", "1", 1, played) - empty, wall("jobs", f"1-{count}", count, played) - empty
    step.numbers.update({"trials": count, "start": empty, "seconds_of_one": one, "seconds_of_all": every, "throughput": count * one / max(every, 1e-9)})
    step.target(f"throughput of {count} trials at once over one's", step.numbers["throughput"], 6.0, at_most=False)


# These rankers are trained, with these flags.
TRAINED = {"linear": ["--network", "linear"], "m = 100": ["--network", "mlp"], "m = 100, batches of 256": ["--network", "mlp", "--batch", "256"],
           "two hidden layers of 100": ["--network", "mlp", "--depth", "3"], "m = 100, lambdarank": ["--network", "mlp", "--loss", "lambdarank"],
           "m = 100, ranknet": ["--network", "mlp", "--loss", "ranknet"], "m = 100, listmle": ["--network", "mlp", "--loss", "listmle"],
           "linear, lbfgs": ["--network", "linear", "--optimizer", "lbfgs"]}


def training(step: Step) -> None:
    """A pass of `olrank train` over data of MSLR-WEB30K's size, with the evaluation of its validation part."""
    data = step.run.data(step, "queries=18919&test_queries=6306")

    def seconds_of_pass(name: str, flags: Sequence[object], device: str) -> None:
        out = step.run.scratch / f"train-{len(step.numbers)}"
        width = [] if "linear" in flags else ["--width", step.run.pick(100, 8)]
        step.must([step.run.olrank, "train", "--data", data, "--epochs", 4, *width, *flags, "--device", device, "--out", out, "--force", "--quiet"])
        seconds = [json.loads(line)["seconds"] for line in (out / "curve.jsonl").read_text(encoding="utf-8").splitlines()]
        step.numbers[name] = min(after - before for before, after in zip(seconds, seconds[1:]))

    for name, flags in TRAINED.items():
        seconds_of_pass(name, flags, step.run.device)
    step.target("milliseconds of a pass, m = 100, 18,919 queries", 1e3 * step.numbers["m = 100"], 60.0)
    seconds_of_pass("m = 100 on the CPU", TRAINED["m = 100"], "cpu")


def memory(step: Step) -> None:
    """A network whose p × p matrix fits on no GPU, and a smaller one in both forms."""
    pick = step.run.pick
    for width, form, played in ((1024, "dual", 200), (64, "dual", 100), (64, "primal", 100)):
        measured(step, f"m={width} {form}", ["--ranker", "olranknet", "--covariance", "full", "--form", form, "--width",
                                             pick(width, max(2, width // 64)), "--rounds", pick(played, 10), "--data", step.run.data(step)])
