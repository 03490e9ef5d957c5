"""The steps that measure: operations, counters, trials, rounds, members, jobs, memory. A missed target fails none of them."""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from collections.abc import Sequence

from evidence.programs import SKIP_STATUS, Failed, Skipped, last_line
from evidence.run import Step

HOST_STAGES = {"rank", "click", "eval", "save"}  # all others are GPU time
# The operations that most of a round's time goes to, up to where their names become ambiguous.
PROFILED = ("tangent_kernel/query_kernels n={n} ", "inverse_factor/apply_factor n={n} ", "inverse_factor/dual_gram n={n} ",
            "inverse_factor/append_pairs n={n} ", "certain_orders/certain_by_width", "pair_training/forward_history n={n} N=1 ",
            "pair_training/pair_gradients n={n} N=1 ", "largest_curvature/iterate_curvature n={n} ")


# --- operations ---------------------------------------------------------------------------------


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
    try:
        status, output = step.command([step.run.bench, *flags, "--json", report])
    finally:
        if report.exists():  # keep what was measured before a hang
            take_rows(step, json.loads(report.read_text(encoding="utf-8")))
    check_bench(status, output)


def check_bench(status: int, output: str) -> None:
    if status == SKIP_STATUS:
        raise Skipped(last_line(output))
    if status != 0:
        complaints = [line for line in output.splitlines() if line.startswith("device_bench: ")]
        raise Failed(f"device_bench ended with {status}: {'; '.join(complaints[:3]) or last_line(output)}")


def take_rows(step: Step, found: dict) -> None:
    step.numbers.update(ceilings=found["ceilings"], rows=found["measurements"])
    for row in found["measurements"]:
        for verdict in row["targets"]:
            identity = " ".join([row["name"], *(f"{key}={value}" for key, value in row["parameters"].items())])
            step.target(f"{identity}: {verdict['what']}", verdict["measured"], verdict["target"], verdict["at_most"])
    if at_end := found.get("ceilings_at_end"):
        compare_ceilings(step, found["ceilings"], at_end, "after the operations")


def compare_ceilings(step: Step, first: dict, later: dict, when: str) -> None:
    step.numbers[f"ceilings {when}"] = later
    for name, value in later.items():
        step.at_least(f"{name} {when}, over its first measurement", value / max(first[name], 1e-9), 0.97)


def ceilings(step: Step) -> None:
    """The ceilings once more: a hot device may be slower."""
    report = step.run.folder / "ceilings.json"
    check_bench(*step.command([step.run.bench, "--ceilings", "--json", report]))
    later = json.loads(report.read_text(encoding="utf-8"))["ceilings"]
    first = next((one["numbers"].get("ceilings") for one in step.run.results if one["name"] == "bench"), None)
    compare_ceilings(step, first or later, later, "after all steps")


# Nsight Compute reports of a kernel in these sections, and these counters of it are shown.
SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "Occupancy", "LaunchStats", "WarpStateStats")
COUNTERS = ("Duration", "Compute (SM) Throughput", "Memory Throughput", "DRAM Throughput", "L2 Cache Throughput", "Achieved Occupancy",
            "Registers Per Thread", "Grid Size", "Block Size", "Dynamic Shared Memory Per Block")


def plain_name(kernel: str) -> str:
    """Without namespaces, template arguments and parameters."""
    for unnamed in ("(anonymous namespace)::", "<unnamed>::"):
        kernel = kernel.replace(unnamed, "")
    return kernel.partition("(")[0].partition("<")[0].rpartition("::")[2].strip()


def counters_of(report: str) -> list[dict[str, str]]:
    """The kernels of a CSV report of Nsight Compute, in order of launch, each with its counters and their units."""
    lines = report.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    kernels: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(lines[begin:]):
        if row.get("Metric Name") not in COUNTERS:
            continue
        kernel = kernels.setdefault(row["ID"], {"kernel": plain_name(row["Kernel Name"])})
        kernel.setdefault(row["Metric Name"], f"{row['Metric Value']} {row['Metric Unit']}".strip())
    return list(kernels.values())


def counters(step: Step) -> None:
    """Nsight Compute's counters of the operations that a round spends its time in."""
    n = step.run.pick(10_000, 140)
    listed = [f"{line} " for line in step.must([step.run.bench, "--list"]).replace("n=10000 ", f"n={n} ").splitlines()]
    names = [text.format(n=n) for text in PROFILED]
    known = [name for name in names if any(line.startswith(name) for line in listed)]
    step.numbers["missing"] = [name for name in names if name not in known]
    only = [word for name in known for word in ("--only", name)]
    once = [step.run.bench, "--once", *only]
    if step.run.rehearse:
        step.numbers["started"] = len(step.must(once).splitlines())
        return
    report = step.run.folder / "counters.csv"
    sections = [word for section in SECTIONS for word in ("--section", section)]
    status, output = step.command([step.run.programs.profiler_of_kernels(), "--profile-from-start", "off", "--clock-control", "none", "--csv",
                                   "--print-kernel-base", "function", "--force-overwrite", "--log-file", report, *sections, *once])
    text = report.read_text(encoding="utf-8") if report.exists() else ""
    step.numbers["kernels"] = counters_of(text)
    if not step.numbers["kernels"]:
        complaint = re.search(r"==ERROR== (.*)", text + output)
        raise Skipped(f"ncu does not work on this machine: {complaint[1] if complaint else last_line(output)}")
    if status != 0:
        raise Failed(f"device_bench under ncu ended with {status}: {last_line(output)}")


# --- trials -------------------------------------------------------------------------------------


def picked(summary: dict) -> dict:
    """Returns what is kept of a trial. Its seconds are wall-clock time; the GPU is idle in what no stage of its own accounts for."""
    keys = ("seconds", "process_seconds", "rounds_per_second", "seconds_by_stage", "peak_memory_bytes", "parameters", "result_fingerprint")
    on_device = sum(seconds for stage, seconds in summary.get("seconds_by_stage", {}).items() if stage not in HOST_STAGES)
    return {**{key: summary.get(key) for key in keys}, "idle_share": 1.0 - on_device / max(summary["seconds"], 1e-9)}


def trials(step: Step) -> None:
    """Trials of the paper's size, twice for their spread: full and diagonal covariance, and a recorded graph in place of the one kernel."""
    pick = step.run.pick
    flags = ["--ranker", "olranknet", "--width", pick(100, 8), "--steps", pick(20, 2), "--rounds", pick(5000, 20), "--protocol-eval-every",
             pick(100, 10), "--data", step.run.large_data(step)]
    seconds: dict[str, list[float]] = {"full": [], "diagonal": []}
    for number in (1, 2):
        for covariance, found in seconds.items():
            name = f"{covariance} {number}"
            summary = step.trial(name.replace(" ", "-"), [*flags, "--covariance", covariance])
            step.numbers[name] = picked(summary)
            found.append(summary["seconds"])
    for covariance, found in seconds.items():
        step.numbers[f"spread of {covariance}"] = max(found) / max(min(found), 1e-9) - 1.0
    full = sum(seconds["full"])
    step.at_most("seconds of a trial, full covariance, T = 5000, the slower of two", max(seconds["full"]), 4.0)
    step.at_most("full over diagonal", full / max(sum(seconds["diagonal"]), 1e-9), 1.2)
    step.numbers["two hidden layers"] = picked(step.trial("two-layers", [*flags, "--covariance", "full", "--depth", "3"]))
    summary = step.trial("recorded", [*flags, "--covariance", "full", "--training-kernel", "recorded"])
    step.numbers["recorded"] = picked(summary)
    step.at_most("training in one kernel over a recorded graph, whole trials", full / 2.0 / max(summary["seconds"], 1e-9), 1.0)


def covariances(step: Step) -> None:
    """Trials that train on growth, over those that train in every round, both with exact widths."""
    pick = step.run.pick
    flags = ["--ranker", "olranknet", "--width", pick(100, 8), "--steps", pick(20, 2), "--rounds", pick(1000, 20), "--protocol-eval-every",
             pick(100, 10), "--data", step.run.large_data(step)]
    growth = ["--retrain", "growth", "--replay-steps", pick(4, 1), "--replay-pairs", pick(256, 16)]
    cases = {"every round, full": ["--covariance", "full"], "growth, full": ["--covariance", "full", *growth]}
    for name, more in cases.items():
        step.numbers[name] = one = picked(step.trial(name.replace(", ", "-").replace(" ", "-"), [*flags, *more]))
        if "growth" in name:
            step.numbers[f"{name} over every round, full"] = one["seconds"] / max(step.numbers["every round, full"]["seconds"], 1e-9)


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
    sizes = pick((1000, 10_000), (40, 80))
    found = measured_stages(step, "full", ["--structure", "full", "--pairs", ",".join(map(str, sizes))])
    for n, wanted in zip(sizes, (0.5, 1.5)):
        stages = found[f"full n={n}"]
        step.at_most(f"milliseconds of a round at n = {n}", 1e3 * stages["total"], wanted)
        if "idle" in stages:
            step.at_most(f"share of a round at n = {n} in which the GPU is idle", stages["idle"] / max(stages["total"], 1e-9), 0.1)
    measured_stages(step, "members", ["--structure", pick("ensemble-10", "ensemble-2"), "--pairs", pick("100,1000,10000", "10,40")])


def members(step: Step) -> None:
    """Ten members compared with one."""
    pick = step.run.pick
    flags = ["--ranker", "p2neurrank", "--width", pick(100, 8), "--steps", pick(20, 2), "--rounds", pick(1000, 10), "--data",
             step.run.small_data(step)]
    for count in (1, 10):
        step.numbers[f"N={count}"] = picked(step.trial(f"N={count}", [*flags, "--members", count]))
    step.at_most("a trial of N = 10 over one of N = 1, T = 1000", step.numbers["N=10"]["seconds"] / max(step.numbers["N=1"]["seconds"], 1e-9), 3.0)


def jobs(step: Step) -> None:
    """Sixteen trials at once compared with one."""
    pick = step.run.pick
    count, played = pick(16, 2), pick(1000, 10)
    data = step.run.small_data(step)  # not on the clock

    def wall(name: str, seeds: str, at_once: int, rounds_played: int) -> float:
        start = time.monotonic()
        step.play(name, ["--ranker", "olranknet", "--covariance", "full", "--width", pick(100, 8), "--rounds", rounds_played, "--seeds", seeds,
                         "--jobs", at_once, "--data", data])
        return time.monotonic() - start

    empty = wall("jobs-none", "1", 1, 1)  # loading and starting
    one, every = wall("jobs-one", "1", 1, played) - empty, wall("jobs", f"1-{count}", count, played) - empty
    step.numbers.update({"trials": count, "start": empty, "seconds_of_one": one, "seconds_of_all": every, "throughput": count * one / max(every, 1e-9)})
    step.at_least(f"throughput of {count} trials at once over one's", step.numbers["throughput"], 6.0)


# --- training from labels -----------------------------------------------------------------------

# These rankers are trained, with these flags.
TRAINED = {"linear": ["--network", "linear"], "m = 100": ["--network", "mlp"], "m = 100, batches of 256": ["--network", "mlp", "--batch", "256"],
           "two hidden layers of 100": ["--network", "mlp", "--depth", "3"], "m = 100, lambdarank": ["--network", "mlp", "--loss", "lambdarank"],
           "m = 100, ranknet": ["--network", "mlp", "--loss", "ranknet"], "m = 100, listmle": ["--network", "mlp", "--loss", "listmle"],
           "linear, lbfgs": ["--network", "linear", "--optimizer", "lbfgs"]}


def training(step: Step) -> None:
    """A pass of `olrank train` over data of MSLR-WEB30K's size, with the evaluation of its validation part, and PyTorch's beside it."""
    pick = step.run.pick
    data = step.run.data(step, "queries=18919&test_queries=6306")

    def seconds_of_pass(name: str, flags: Sequence[object], device: str, more: Sequence[object] = ()) -> float:
        out = step.run.scratch / f"train-{len(step.numbers)}"
        width = [] if "linear" in flags else ["--width", pick(100, 8)]
        step.must([step.run.olrank, "train", "--data", data, "--epochs", 4, *width, *flags, *more, "--device", device, "--out", out, "--force", "--quiet"])
        seconds = [json.loads(line)["seconds"] for line in (out / "curve.jsonl").read_text(encoding="utf-8").splitlines()]
        step.numbers[name] = found = min(after - before for before, after in zip(seconds, seconds[1:]))
        return found

    for name, flags in TRAINED.items():
        seconds_of_pass(name, flags, step.run.device)
    on_card = step.numbers["m = 100"]
    step.at_most("milliseconds of a pass, m = 100, 18,919 queries", 1e3 * on_card, 60.0)
    if step.run.rehearse:
        return
    step.numbers["CPU, all cores, over the card, m = 100"] = seconds_of_pass("m = 100 on the CPU", TRAINED["m = 100"], "cpu") / max(on_card, 1e-9)
    status, output = step.command([sys.executable, "-c", TORCH_PASS])
    if status != 0:
        step.numbers["PyTorch"] = f"does not run on this machine: {last_line(output)}"
        return
    found = json.loads(last_line(output))
    step.numbers["PyTorch, padded batches, m = 100"] = found["seconds"]
    step.numbers["PyTorch over olrank, without evaluation on its side"] = found["seconds"] / max(on_card, 1e-9)


# A plain loop: as many queries, padded in each batch to the longest of their lists, listwise softmax and Adam, all of it on the card before.
TORCH_PASS = """
import json, time, torch
torch.manual_seed(1)
lengths = torch.randint(60, 180, (18919,)).tolist()
lists = [(torch.rand(n, 136, device="cuda"), torch.randint(0, 5, (n,), device="cuda").float()) for n in lengths]
model = torch.nn.Sequential(torch.nn.Linear(136, 100), torch.nn.ReLU(), torch.nn.Linear(100, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
best = None
for _ in range(3):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for begin in range(0, len(lists), 32):
        part = lists[begin:begin + 32]
        docs = torch.nn.utils.rnn.pad_sequence([docs for docs, _ in part], batch_first=True)
        grades = torch.nn.utils.rnn.pad_sequence([grades for _, grades in part], batch_first=True, padding_value=-1e9)
        scores = model(docs).squeeze(2).masked_fill(grades < 0, -1e9)
        loss = -(torch.softmax(grades, 1) * torch.log_softmax(scores, 1)).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    best = seconds if best is None else min(best, seconds)
print(json.dumps({"seconds": best}))
"""


def memory(step: Step) -> None:
    """A network whose p × p matrix fits on no GPU, and a smaller one in both forms."""
    pick = step.run.pick
    for width, form, played in ((1024, "dual", 200), (64, "dual", 100), (64, "primal", 100)):
        name = f"m={width} {form}"
        summary = step.trial(name.replace(" ", "-"), ["--ranker", "olranknet", "--covariance", "full", "--form", form, "--width",
                                                      pick(width, max(2, width // 64)), "--rounds", pick(played, 10), "--data", step.run.small_data(step)])
        last = summary["last"]
        step.numbers[name] = {**picked(summary), "pairs": last["pairs"], **{key: last.get(key) for key in ("posterior_bytes", "device_bytes")}}
