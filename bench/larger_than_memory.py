"""Training, evaluation and rounds on data larger than --max-memory, beside the same with all features in memory.

bench/larger_than_memory.py PROGRAM [--source SOURCE] [--max-memory SIZE] [--record]

The data are written as text once and read without a cache of copies, so that every step parses them. Prints seconds and the
largest anonymous memory of each step, which is what the system cannot drop, and fails where two results differ by a bit.
--record takes the table into the record of docs/BENCHMARKS.md."""

import argparse
import datetime
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "evidence"))
import records  # noqa: E402


def anonymous_bytes(process):
    """Returns the anonymous memory of a running process; 0 when it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    lines = [line.split() for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(lines[0][1]) * 1024 if lines else 0


def measured(command, every=0.002):
    """Returns what the command wrote to stderr, its seconds, and its largest anonymous memory in bytes, seen so often."""
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


def compared(program, source, limit, folder):
    """For each step: its name, and of the dense and the limited way the seconds, the anonymous bytes, what was said, and the
    bytes of the result."""
    data = folder / "data"
    subprocess.run([program, "data", "synth", source, "--out", data], check=True, stdout=subprocess.DEVNULL)
    ways = [list(steps(program, data, folder / way, ["--cache", "none", *flags]))
            for way, flags in (("dense", []), ("limited", ["--max-memory", limit]))]
    for pair in zip(*ways):
        yield pair[0][0], [(*measured(command), result.read_bytes()) for _, result, command in pair]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--source", default="mslr-like?queries=26000&test_queries=2600")
    parser.add_argument("--max-memory", default="500MB")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for step, ways in compared(arguments.program, arguments.source, arguments.max_memory, pathlib.Path(folder)):
            if ways[0][3] != ways[1][3]:
                sys.exit(f"{step}: the results differ")
            rows.append([f"`olrank {step}`"] + [figure for _, seconds, most, _ in ways for figure in (f"{most / 1e6:,.0f}", f"{seconds:.1f}")])
            print(rows[-1], ways[1][0], flush=True)
    if arguments.record:
        record = records.read("pages", "BENCHMARKS")
        record["tables"]["larger-than-memory"] = {
            "recorded": datetime.date.today().isoformat(),
            "origin": f"`bench/larger_than_memory.py`: `synth:{arguments.source}` as text without a cache, a linear network, 2 passes and "
                      f"300 rounds, 2 threads; `--max-memory {arguments.max_memory}`, and without it. The results are equal to the bit",
            "header": ["command", "anonymous memory without a limit (MB)", "time (s)", "anonymous memory with it (MB)", "time (s)"],
            "rows": rows}
        records.write("pages", "BENCHMARKS", record)


if __name__ == "__main__":
    main()
