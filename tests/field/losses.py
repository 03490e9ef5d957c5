"""Compares the losses of `olrank train` with those of allRank and ULTRA. evidence/field.py runs it."""

import json
import subprocess
import sys

import numpy as np
from rows import row

DOCS, QUERIES = 6, 40


def losses_of(olrank, data, folder, seed):
    """Yields, for each loss, the scores of a linear model after two passes and the loss that `olrank train` says they have."""
    for loss, more in (("listnet", ()), ("ranknet", ()), ("lambdarank", ()), ("listmle", ()), ("pair-mean", ("--pair-mean", "true"))):
        out = folder / f"{loss}{seed}"
        parts = [word for part in ("train", "vali", "test") for word in (f"--data-{part}", data)]
        subprocess.run([sys.executable, "-m", "olrank", "train", *parts, "--data-normalise", "none", "--network", "linear",
                        "--loss", "ranknet" if loss == "pair-mean" else loss, "--epochs", "2", "--learning-rate", "0.3",
                        "--seeds", str(seed), "--out", out, *more], check=True, capture_output=True)
        loaded = olrank.load_letor(data)
        scores = olrank.load_model(out / "model.safetensors").score(loaded.X, loaded.group)
        yield loss, scores, json.loads((out / "summary.json").read_text())["loss"], loaded


def compare(olrank, ultra, folder):
    import torch
    from allrank.models import losses as theirs

    rng = np.random.default_rng(7)
    found = {}
    for seed in range(1, 6):
        # Grades of a query are all different: allRank breaks ties of ListMLE by chance, and olrank sums over their orders.
        grades = np.concatenate([rng.permutation(DOCS) for _ in range(QUERIES)])
        data = folder / f"losses{seed}.txt"
        olrank.Dataset.from_arrays(rng.normal(size=(len(grades), 5)), grades, group=[DOCS] * QUERIES).save(data)
        for loss, scores, ours, loaded in losses_of(olrank, data, folder, seed):
            s, y = (torch.tensor(np.array(one, dtype=np.float64)).reshape(QUERIES, DOCS) for one in (scores, loaded.y))
            each = [(s[query:query + 1], y[query:query + 1]) for query in range(QUERIES)]
            share = torch.softmax(y, dim=1)

            def lambdas(s=s, y=y, **more):
                return theirs.lambdaLoss(s, y, reduction_log="natural", **more) / QUERIES

            values = {
                "listnet": {"listNet": theirs.listNet(s, y), "binary_listNet": theirs.binary_listNet(s, share)},
                "listmle": {"listMLE": theirs.listMLE(s, y)},
                "ranknet": {"lambdaLoss, rankNet_scheme": lambdas(weighing_scheme="rankNet_scheme")},
                "pair-mean": {"rankNet": sum(theirs.rankNet(*one) for one in each) / QUERIES},
                "lambdarank": {"lambdaLoss, lambdaRank_scheme": lambdas(weighing_scheme="lambdaRank_scheme")},
            }[loss]
            for name, value in values.items():
                found.setdefault(("allRank", name, loss), []).append((float(value), ours))
            if ultra is not None and loss in ("listnet", "ranknet"):
                value = ultra.softmax_loss(ultra, s, share)
                if loss == "ranknet":
                    value = 0.0
                    for one, grade in each:
                        pairs = torch.argwhere(grade[0][:, None] > grade[0][None, :])
                        of_pairs = ultra.pairwise_cross_entropy_loss(ultra, *(one[0][side][:, None] for side in pairs.T))
                        value += of_pairs.mean() * len(pairs) / QUERIES
                name = "softmax_loss" if loss == "listnet" else "pairwise_cross_entropy_loss"
                found.setdefault(("ULTRA_pytorch", name, loss), []).append((float(value), ours))
    softmax, natural = "with softmax(y) for its labels: it normalises grades by their sum", "natural logarithm, divided by the queries"
    notes = {
        "binary_listNet": softmax,
        "softmax_loss": f"{softmax}, and adds 10⁻⁷ to each",
        "listMLE": "without equal grades, whose order it draws",
        "rankNet": "one query a batch: it is the mean over the pairs of a batch",
        "pairwise_cross_entropy_loss": "its mean over the pairs of a query, times their number: of n pairs it returns n × n values",
        "lambdaLoss, rankNet_scheme": natural,
        "lambdaLoss, lambdaRank_scheme": natural,
    }
    rows = [row(package, name, f"--loss {'ranknet --pair-mean true' if loss == 'pair-mean' else loss}", pairs, notes.get(name, ""))
            for (package, name, loss), pairs in found.items()]
    rows.append(row("allRank", "approxNDCG, neuralNDCG, pointwise_rmse, bce, ordinal, NDCGLoss1 and 2", "–", (),
                    "olrank has none of them; its `smooth-dcg`, `ranksvm` and `rankcosine` are not in allRank"))
    rows.append(row("ULTRA_pytorch", "sigmoid_loss_on_list, pairwise_loss_on_list", "–", (),
                    "they raise at this commit: a tensor against a number, and a method of an integer"))
    return rows
