"""Compares olrank with PyTorch on the same work: bench/peers/compare.py [--olrank PROGRAM] [--json FILE] [--device cpu|cuda]

First checks that both PyTorch versions and olrank agree on the widths of traced rounds. Then times a query's widths and a
training step on one thread, in CPU seconds (wall-clock seconds on a GPU), and prints ratios. Work that takes the plain
version too long is timed in part and scaled; the table says so."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print("skipped: this Python has no torch; install it, or use a Python that has it")
    sys.exit(0)

import torch_rankers as peers

LAMBDA = 10.0


def program(arguments, *more):
    ran = subprocess.run([arguments.olrank, *map(str, more)], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, more))} failed: {ran.stderr.strip()}")
    return ran.stdout


def letor_queries(path):
    queries = {}
    for line in path.read_text().splitlines():
        fields = line.split("#")[0].split()
        values = [float(field.split(":")[1]) for field in fields[2:]]
        queries.setdefault(fields[1].split(":")[1], []).append(values)
    return queries


def normalised(rows):
    """query-minmax: scales each feature of a query to [0, 1]."""
    docs = torch.tensor(rows, dtype=torch.float32)
    low, high = docs.min(0).values, docs.max(0).values
    span = torch.where(high > low, high - low, torch.ones_like(high))
    return (docs - low) / span


def check(arguments):
    """Runs some rounds of a small trial and recomputes its widths from parameters, data and pairs."""
    worst = 0.0
    for covariance in ("full", "diagonal"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source = "synth:small?queries=12"
            program(arguments, "data", "synth", source, "--out", folder / "data")
            program(arguments, "run", "--protocol", "paper", "--data", source, "--fold", 1, "--ranker", "olranknet", "--width", 8, "--covariance",
                    covariance, "--lambda", LAMBDA, "--clicks", "perfect", "--rounds", 25, "--seeds", 1, "--trace",
                    folder / "trace.jsonl", "--trace-detail", "--out", folder / "out", "--quiet")
            queries = letor_queries(folder / "data" / "train.txt")
            seen = []
            for line in (folder / "trace.jsonl").read_text().splitlines()[1:]:
                traced = json.loads(line)
                docs = normalised(queries[traced["qid"]])
                theta = torch.tensor(traced["theta"], dtype=torch.float32).flatten()
                network = peers.Network(docs.shape[1], 8, theta, "cpu")
                told = torch.tensor(traced["width_sq"], dtype=torch.float64).view(len(docs), len(docs))
                inner = torch.stack(seen) if seen else torch.zeros(0, network.parameters, dtype=torch.float64)
                if covariance == "full":
                    a = LAMBDA * torch.eye(network.parameters, dtype=torch.float64) + inner.T @ inner / 8
                    found = [peers.plain_full_widths(network, docs, torch.linalg.inv(a))]
                else:
                    diagonal = LAMBDA + (inner ** 2).sum(0) / 8
                    found = [peers.plain_diagonal_widths(network, docs, diagonal),
                             peers.gram_diagonal_widths(network, docs, diagonal)]
                for widths in found:
                    worst = max(worst, ((widths - told).abs().max() / told.abs().max()).item())
                g = peers.gradients(network, docs)
                seen += [g[winner] - g[loser] for winner, loser in traced["pairs"]]
    # float32 gradients computed in another order differ by a relative error of about 1e-6.
    if not worst <= 1e-4:
        sys.exit(f"widths differ by {worst:.1e} of the largest; nothing was timed")
    return worst


def check_gram(network, docs, winners, losers):
    """Checks the dual form against the plain inverse, at a small size."""
    few = 40
    posterior = peers.GramPosterior(network, winners[:few], losers[:few], LAMBDA)
    pairs = peers.gradients(network, winners[:few]) - peers.gradients(network, losers[:few])
    g = peers.gradients(network, docs[:6])
    solved = torch.linalg.solve(torch.eye(few, dtype=torch.float64, device=docs.device) * LAMBDA + pairs @ pairs.T / network.width,
                                pairs)
    inverse_g = (g - g @ pairs.T @ solved / network.width) / LAMBDA
    plain = peers.widths_of(inverse_g @ g.T / network.width)
    gram = posterior.widths(docs[:6])
    error = ((plain - gram).abs().max() / plain.max()).item()
    if not error <= 1e-4:
        sys.exit(f"the two PyTorch versions differ by {error:.1e}; nothing was timed")


def check_step(network, winners, losers):
    """Checks the explicit step against autograd."""
    theta = network.theta
    plain = peers.plain_training_step(network, theta, torch.zeros_like(theta), winners, losers, 0.5, 1e-3)
    written = peers.written_out_training_step(network, theta, torch.zeros_like(theta), torch.cat((winners, losers)), 0.5, 1e-3)
    error = ((plain - written).abs().max() / (plain - theta).abs().max()).item()
    if not error <= 1e-3:
        sys.exit(f"the two PyTorch steps differ by {error:.1e} of the largest; nothing was timed")


def clock(device):
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def seconds(work, device, repeats):
    work()
    times = []
    for _ in range(repeats):
        start = clock(device)
        work()
        times.append(clock(device) - start)
    return statistics.median(times)


def olrank_seconds(arguments, names):
    """The total of consecutive operations."""
    seconds = 0.0
    for name in names.split("+"):
        told = json.loads(program(arguments, "bench", "ops", "--only", name, "--pairs", arguments.pairs, "--docs", arguments.docs,
                                  "--width", arguments.width, "--features", arguments.features, "--json", "--quiet"))
        seconds += next(one for one in told["measurements"] if one["name"] == name)["seconds"]["median"]
    return seconds, told["machine"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--olrank", default="build/bin/olrank")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--docs", type=int, default=120)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--most-bytes", type=float, default=4e9, help="memory limit of the plain inverse")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    device = arguments.device
    if device == "cuda" and not torch.cuda.is_available():
        print("skipped: torch finds no GPU")
        return
    torch.set_num_threads(1)
    error = check(arguments)
    print(f"widths agree to {error:.1e} of the largest")

    draws = torch.Generator().manual_seed(1)
    uniform = lambda count: torch.rand(count, arguments.features, generator=draws).to(device)
    parameters = arguments.width * (arguments.features + 1)
    theta = torch.randn(parameters, generator=draws) * (4 / arguments.width) ** 0.5
    network = peers.Network(arguments.features, arguments.width, theta, device)
    docs, winners, losers = uniform(arguments.docs), uniform(arguments.pairs), uniform(arguments.pairs)
    diagonal = LAMBDA + torch.rand(parameters, generator=draws, dtype=torch.float64).to(device)
    check_gram(network, docs, winners, losers)

    rows = []

    def row(work, name, version, measured, note=""):
        own, machine = olrank_seconds(arguments, name)  # measured again for every row, next to the PyTorch version
        rows.append({"work": work, "version": version, "seconds": measured, "olrank_seconds": own, "ratio": measured / own,
                     "note": note})
        return machine

    machine = row("diagonal widths", "widths/diagonal", "plain",
                  seconds(lambda: peers.plain_diagonal_widths(network, docs, diagonal), device, 3))
    row("diagonal widths", "widths/diagonal", "same algebra",
        seconds(lambda: peers.gram_diagonal_widths(network, docs, diagonal), device, arguments.repeats))
    if 8.0 * parameters ** 2 <= arguments.most_bytes:
        inverse = torch.eye(parameters, dtype=torch.float64, device=device) / LAMBDA
        few = min(4, arguments.docs)
        part = sum(arguments.docs - 1 - i for i in range(few)) / (arguments.docs * (arguments.docs - 1) / 2)
        gradients = seconds(lambda: peers.gradients(network, docs), device, 3)
        measured = seconds(lambda: peers.plain_full_widths(network, docs, inverse, few), device, 1)
        row("full widths", "widths/full", "plain", gradients + (measured - gradients) / part,
            f"{100 * part:.1f} % of the pairs timed, scaled")
        del inverse
    else:
        rows.append({"work": "full widths", "version": "plain", "note": f"its {8e-9 * parameters ** 2:.1f} GB do not fit"})
    posterior = peers.GramPosterior(network, winners, losers, LAMBDA)
    row("full widths", "widths/full", "same algebra", seconds(lambda: posterior.widths(docs), device, arguments.repeats))
    check_step(network, winners, losers)
    step = "pair_training/pair_gradient+optimizer_step/gradient_descent_step"
    row("training step", step, "plain",
        seconds(lambda: peers.plain_training_step(network, network.theta, network.theta, winners, losers, 500.0, 1e-6), device,
                arguments.repeats))
    both = torch.cat((winners, losers))
    row("training step", step, "same algebra",
        seconds(lambda: peers.written_out_training_step(network, network.theta, network.theta, both, 500.0, 1e-6), device,
                arguments.repeats))

    print(f"{'work':<18} {'PyTorch':<14} {'seconds':>12} {'olrank':>12} {'ratio':>8}")
    for one in rows:
        if "ratio" in one:
            print(f"{one['work']:<18} {one['version']:<14} {one['seconds']:>12.6f} {one['olrank_seconds']:>12.6f} "
                  f"{one['ratio']:>8.1f}  {one['note']}")
        else:
            print(f"{one['work']:<18} {one['version']:<14} {one['note']}")
    if arguments.json:
        sizes = {name: getattr(arguments, name) for name in ("pairs", "docs", "width", "features")}
        pathlib.Path(arguments.json).write_text(json.dumps(
            {"machine": machine, "torch": torch.__version__, "device": device, "sizes": sizes, "widths_agree_to": error,
             "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
