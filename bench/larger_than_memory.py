"""Training, evaluation and rounds on data larger than --max-memory, beside the same with all features in memory, and on features
kept as float16 or uint8.

bench/larger_than_memory.py PROGRAM [--source SOURCE] [--max-memory SIZE] [--features-as | --losses DATA] [--record]

The data are written as text once and read without a cache of copies, so that every step parses them. Prints seconds and the
largest anonymous memory of each step, which is what the system cannot drop, and fails where two results differ by a bit.
--features-as prints the memory and the CPU's seconds of features kept as each type instead; these steps read a cache of
copies, as a second run on the same data does. --losses prints what smaller features cost in NDCG@10, on the folders mq2008
and mslr-sample of DATA and on generated data. --record takes the table into docs/evidence/pages/BENCHMARKS.json."""

import argparse
import datetime
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import pages
import tables


def anonymous_bytes(process):
    """Of a running process; 0 when it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line.split() for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(lines[0][1]) * 1024 if lines else 0


def measured(command, every=0.002):
    """What the command wrote to stderr, its seconds, and its largest anonymous memory in bytes, seen so often."""
    with tempfile.TemporaryFile("w+") as said:
        begin = time.monotonic()
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=said) as process:
            most = 0
            while process.poll() is None:
                most = max(most, anonymous_bytes(process.pid))
                time.sleep(every)
        seconds = time.monotonic() - begin
        said.seek(0)
        text = said.read()
        if process.returncode != 0:
            raise RuntimeError(f"{command} ended with {process.returncode}: {text}")
        return text, seconds, most


TYPES = ("float32", "float16", "uint8")


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def steps(program, data, out, flags):
    """Commands that read all of the data or of a part, each with the file of its result."""
    parts = ["--data-train", data / "train.txt", "--data-vali", data / "vali.txt", "--data-test", data / "test.txt"]
    common = ["--threads", 2, *flags]
    yield "train", out / "train/model.safetensors", [
        program, "train", *parts, "--network", "linear", "--epochs", 2, "--patience", 0, "--out", out / "train", *common]
    yield "eval", out / "eval.csv", [
        program, "eval", "--data", data / "train.txt", "--model", out / "train/model.safetensors",
        "--per-query", out / "eval.csv", *common]
    yield "run", out / "run/trials/pdgd/perfect/fold1/seed1/model.safetensors", [
        program, "run", *parts, "--ranker", "pdgd", "--network", "linear", "--rounds", 300, "--seeds", 1,
        "--clicks", "perfect", "--out", out / "run", *common]


def written(program, source, folder):
    subprocess.run([program, "data", "synth", source, "--out", folder / "data"], check=True, stdout=subprocess.DEVNULL)
    return folder / "data"


def compared(program, source, limit, folder):
    """For each step: its name, and of the dense and the limited way the seconds, the anonymous bytes, what was said, and the
    bytes of the result."""
    data = written(program, source, folder)
    ways = [list(steps(program, data, folder / way, ["--cache", "none", *flags]))
            for way, flags in (("dense", []), ("limited", ["--max-memory", limit]))]
    for pair in zip(*ways):
        yield pair[0][0], [(*measured(command), result.read_bytes()) for _, result, command in pair]


def kept_smaller(program, source, folder):
    """For each type of features: its name, and of the steps that keep features the anonymous bytes and the CPU's seconds."""
    data = written(program, source, folder)
    flags = ["--cache", folder / "cache"]
    for step, _, command in steps(program, data, folder / "first", flags):
        if step == "train":
            measured(command)  # fills the cache
    for kept in TYPES:
        found = []
        for step, _, command in steps(program, data, folder / kept, [*flags, "--features-as", kept]):
            if step == "eval":
                continue
            before = cpu_seconds()
            most = measured(command)[2]
            found.append((most, cpu_seconds() - before))
        yield kept, found



LEARNERS = {"linear": ("train", ["--network", "linear"], "*/*/"), "network": ("train", ["--network", "mlp"], "*/*/"),
            "`clickgp`": ("run", ["--ranker", "clickgp", "--clicks", "navigational", "--rounds", "1000"], "trials/*/*/*/*/")}


def loss_sources(data):
    """Rows of the table: name, source, folds and seeds."""
    five = range(1, 6)
    return [("MQ2008, means of five folds, three seeds", data / "mq2008", five, range(1, 4)),
            ("MSLR sample, five seeds", data / "mslr-sample", [1], five),
            ("`synth:mslr-like?queries=300`, five seeds", "synth:mslr-like?queries=300", [1], five)]


def losses(program, data, folder):
    """For each source and learner: NDCG@10 of the models on the test parts in float32, by the type that they learned from: the
    means over folds of each seed."""
    for name, source, folds, seeds in loss_sources(data):
        for learner, (step, flags, models) in LEARNERS.items():
            found = {}
            for kept in TYPES:
                out = folder / f"{len(found)}-{step}-{learner.strip('`')}-{name[:2]}"
                listed = [",".join(map(str, one)) for one in (folds, seeds)]
                subprocess.run([program, step, "--data", source, "--fold", listed[0], "--seeds", listed[1], "--threads", "2",
                                *flags, "--features-as", kept, "--out", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
                each = {seed: [ndcg(program, source, model) for model in out.glob(f"{models}model.safetensors") if f"seed{seed}" in model.parts]
                        for seed in seeds}
                assert all(len(one) == len(folds) for one in each.values()), each
                found[kept] = [round(statistics.fmean(one), 6) for one in each.values()]
            yield name, learner, found


def ndcg(program, source, model):
    fold = next(part.removeprefix("fold") for part in model.parts if re.fullmatch(r"fold\d+", part))
    done = subprocess.run([program, "eval", "--data", source, "--fold", fold, "--model", model, "--json"],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["metrics"]["ndcg@10"]


def interval(values):
    half = tables.half_width(values)
    return f"{statistics.fmean(values):+.4f}".replace("-", "−").replace("0.", ".") + f" ± {half:.4f}".replace("0.", ".")


def take(record_name, table):
    record = json.loads((pages.RECORDS / "BENCHMARKS.json").read_text())
    record["tables"][record_name] = {"recorded": datetime.date.today().isoformat(), **table}
    pages.write_record("pages/BENCHMARKS", record)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--source", default="mslr-like?queries=26000&test_queries=2600")
    parser.add_argument("--max-memory", default="500MB")
    parser.add_argument("--features-as", action="store_true")
    parser.add_argument("--losses", type=pathlib.Path, metavar="DATA")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = loss_table if arguments.losses else type_table if arguments.features_as else limit_table
        table = made(arguments, folder)
    if arguments.record:
        take(*table)


def limit_table(arguments, folder):
    rows = []
    for step, ways in compared(arguments.program, arguments.source, arguments.max_memory, folder):
        if ways[0][3] != ways[1][3]:
            sys.exit(f"{step}: the results differ")
        rows.append([f"`olrank {step}`"] + [figure for _, seconds, most, _ in ways for figure in (f"{most / 1e6:,.0f}", f"{seconds:.1f}")])
        print(rows[-1], ways[1][0], flush=True)
    return "larger-than-memory", {
        "origin": f"`bench/larger_than_memory.py`: `synth:{arguments.source}` as text without a cache, a linear network, 2 passes and "
                  f"300 rounds, 2 threads; `--max-memory {arguments.max_memory}`, and without it. The results are equal to the bit",
        "header": ["command", "anonymous memory without a limit (MB)", "time (s)", "anonymous memory with it (MB)", "time (s)"],
        "rows": rows}


def type_table(arguments, folder):
    rows = []
    for kept, found in kept_smaller(arguments.program, arguments.source, folder):
        rows.append([f"`{kept}`"] + [figure for most, seconds in found for figure in (f"{most / 1e6:,.0f}", f"{seconds:.1f}")])
        print(rows[-1], flush=True)
    return "features-as", {
        "origin": f"`bench/larger_than_memory.py --features-as`: `synth:{arguments.source}` from a cache that an earlier run filled, a "
                  "linear network, 2 passes and 300 rounds, 2 threads",
        "header": ["features kept as", "`olrank train`: anonymous memory (MB)", "time of the CPU (s)", "`olrank run`: anonymous memory (MB)",
                   "time of the CPU (s)"],
        "rows": rows}


def loss_table(arguments, folder):
    rows, each = [], {}
    for name, learner, found in losses(arguments.program, arguments.losses, folder):
        exact = found["float32"]
        less = [[a - b for a, b in zip(found[kept], exact)] for kept in TYPES[1:]]
        rows.append([name, learner, f"{statistics.fmean(exact):.4f}".removeprefix("0"), *map(interval, less)])
        each[f"{name}, {learner}"] = found
        print(rows[-1], flush=True)
    return "features-as-losses", {
        "origin": "`bench/larger_than_memory.py --losses`: NDCG@10 of the models on the test parts in float32, by `olrank eval`; "
                  "`olrank train` with its defaults, and `olrank run` over 1,000 rounds of a navigational user; differences are of the "
                  "same seeds, ± is half of their 95 % t interval",
        "header": ["data", "learner", "`float32`", "`float16` − `float32`", "`uint8` − `float32`"],
        "rows": rows, "each": each}


if __name__ == "__main__":
    main()
