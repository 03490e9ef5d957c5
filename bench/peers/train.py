"""Compares `olrank train` with a plain PyTorch loop: bench/peers/train.py [--olrank PROGRAM] [--json FILE]

First checks that both have the same loss and gradient: a linear ListNet of olrank is at a minimum for PyTorch, too. Then
times a pass over the training part on one thread, or with --device cuda on one GPU, each with batches of queries, listwise
softmax and Adam, the two taking turns, and prints ratios. PyTorch's loop comes in two versions: query by query, as most
tutorials have it, and by batches padded to the longest list."""

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


def program(arguments, *more):
    ran = subprocess.run([arguments.olrank, *map(str, more)], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, more))} failed: {ran.stderr.strip()}")
    return ran.stdout


def letor_lists(path):
    """The features and the grades of each query's documents."""
    queries = {}
    for line in path.read_text().splitlines():
        grade, qid, *fields = line.split("#")[0].split()
        rows, grades = queries.setdefault(qid, ([], []))
        rows.append([float(field.split(":")[1]) for field in fields])
        grades.append(float(grade))
    return queries.values()


def normalised(rows):
    """query-minmax: scales each feature of a query to [0, 1]."""
    docs = torch.tensor(rows, dtype=torch.float32)
    low, high = docs.min(0).values, docs.max(0).values
    span = torch.where(high > low, high - low, torch.ones_like(high))
    return (docs - low) / span


def listnet(scores, grades):
    return -(torch.softmax(grades, 0) * torch.log_softmax(scores, 0)).sum()


def check(arguments):
    """The gradient of PyTorch's mean loss at olrank's minimum, relative to its length at 0."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = "synth:small?queries=60"
        program(arguments, "data", "synth", source, "--out", folder / "data")
        program(arguments, "train", "--data", source, "--network", "linear", "--loss", "listnet", "--optimizer", "lbfgs", "--l2",
                0.1, "--out", folder / "out", "--quiet")
        program(arguments, "export", folder / "out", "--to", "json", "--out", folder / "model.json")
        summary = json.loads((folder / "out" / "summary.json").read_text())
        found = find_numbers(json.loads((folder / "model.json").read_text()))
        lists = [(normalised(rows).double(), torch.tensor(grades, dtype=torch.float64))
                 for rows, grades in letor_lists(folder / "data" / "train.txt")]
        length = {}
        for name, start in (("found", found), ("zero", torch.zeros_like(found))):
            w = start.clone().requires_grad_(True)
            loss = sum(listnet(docs @ w, y) for docs, y in lists) / len(lists) + 0.05 * (w * w).sum()
            loss.backward()
            length[name] = w.grad.norm().item()
            if name == "found" and not abs(loss.item() - summary["loss"]) <= 1e-5 * abs(summary["loss"]):
                sys.exit(f"the objectives differ: {loss.item()} and {summary['loss']}; nothing was timed")
        return length["found"] / length["zero"]


def find_numbers(model):
    """The longest list of numbers of an exported linear model."""
    def lists_of(value):
        if isinstance(value, list) and value and all(isinstance(item, (int, float)) for item in value):
            yield value
        elif isinstance(value, (list, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                yield from lists_of(item)

    return torch.tensor(max(lists_of(model.get("layers", model)), key=len), dtype=torch.float64)


def network(kind, features, width):
    if kind == "linear":
        return torch.nn.Linear(features, 1, bias=False)
    return torch.nn.Sequential(torch.nn.Linear(features, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))


def loss_by_query(model, part):
    return sum(listnet(model(docs).squeeze(1), grades) for docs, grades in part) / len(part)


def loss_by_padding(model, part):
    docs = torch.nn.utils.rnn.pad_sequence([docs for docs, _ in part], batch_first=True)
    grades = torch.nn.utils.rnn.pad_sequence([grades for _, grades in part], batch_first=True, padding_value=-1e9)
    scores = model(docs).squeeze(2).masked_fill(grades < 0, -1e9)
    return -(torch.softmax(grades, 1) * torch.log_softmax(scores, 1)).sum(1).mean()


def torch_pass(loss_of, model, optimizer, lists, batch):
    for begin in range(0, len(lists), batch):
        optimizer.zero_grad()
        loss_of(model, lists[begin:begin + batch]).backward()
        optimizer.step()


def olrank_pass(arguments, kind, folder):
    """Seconds of the fastest of three passes, the evaluation of the validation part taken off."""
    program(arguments, "train", "--data", arguments.source, "--network", kind,
            *([] if kind == "linear" else ["--width", arguments.width]), "--epochs", 3, "--batch", arguments.batch, "--threads", 1,
            "--device", arguments.device, "--out", folder / "out", "--force", "--quiet")
    seconds = [json.loads(line)["seconds"] for line in (folder / "out" / "curve.jsonl").read_text().splitlines()]
    # The first point is an evaluation alone; on a GPU it also starts the card, so that a pass keeps its evaluation there.
    return min(after - before for before, after in zip(seconds, seconds[1:])) - (seconds[0] if arguments.device == "cpu" else 0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--olrank", default="build/bin/olrank")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--data", help="a data set in place of generated queries")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arguments.source = arguments.data or f"synth:mslr-like?queries={arguments.queries}"
    torch.set_num_threads(1)
    error = check(arguments)
    if not error <= 1e-3:
        sys.exit(f"the gradient at olrank's minimum is {error:.1e} of that at 0; nothing was timed")
    print(f"at olrank's minimum PyTorch's gradient is {error:.1e} of that at 0")
    with tempfile.TemporaryDirectory() as folder:
        program(arguments, "train", "--data", arguments.source, "--network", "linear", "--epochs", 1, "--out",
                pathlib.Path(folder) / "sizes", "--quiet")
        summary = json.loads((pathlib.Path(folder) / "sizes" / "summary.json").read_text())
    docs, queries, features = summary["train"]["docs"], summary["train"]["queries"], summary["features"]
    # Lists of the same lengths on average; their contents do not change the time.
    draws = torch.Generator().manual_seed(1)
    lengths = torch.randint(docs // queries // 2, 3 * docs // queries // 2, (queries,), generator=draws).tolist()
    lists = [(torch.rand(count, features, generator=draws).to(arguments.device),
              torch.randint(0, 5, (count,), generator=draws).float().to(arguments.device)) for count in lengths]
    total = sum(lengths)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("linear", "mlp"):
            for version, loss_of in (("query by query", loss_by_query), ("padded batches", loss_by_padding)):
                model = network(kind, features, arguments.width).to(arguments.device)
                optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
                ours, theirs = [], []
                for _ in range(arguments.repeats):
                    ours.append(olrank_pass(arguments, kind, pathlib.Path(folder)))
                    start = time.perf_counter()
                    torch_pass(loss_of, model, optimizer, lists, arguments.batch)
                    if arguments.device == "cuda":
                        torch.cuda.synchronize()
                    theirs.append((time.perf_counter() - start) * docs / total)
                rows.append({"network": kind, "version": version, "seconds": statistics.median(theirs),
                             "olrank_seconds": statistics.median(ours),
                             "ratio": statistics.median(theirs) / statistics.median(ours)})
                print("{network}, {version}: PyTorch {seconds:.3f} s, olrank {olrank_seconds:.3f} s, ratio {ratio:.2f}".format(
                    **rows[-1]))
    if arguments.json:
        where = {"device": torch.cuda.get_device_name()} if arguments.device == "cuda" else {"threads": 1}
        told = {"torch": torch.__version__, **where, "queries": queries, "docs": docs, "features": features,
                "width": arguments.width, "batch": arguments.batch, "rows": rows}
        pathlib.Path(arguments.json).write_text(json.dumps(told, indent=1) + "\n")


main()
