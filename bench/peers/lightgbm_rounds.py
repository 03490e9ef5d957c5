#!/usr/bin/env python3
"""LightGBM's LambdaMART beside olrank's rankers, on the same queries and clicks: bench/peers/lightgbm_rounds.py [--json FILE]

It learns online as one would use it in practice: it is trained again on the whole log of shown lists and clicks, at rounds
that grow by a factor, and lists are by its scores in between; documents of equal scores come in random order. One version
takes clicks as grades, the other gives the ranks of the documents to LightGBM's position debiasing. Their trials are those
of an experiment, so that users, queries, coins and figures are the same for all. Run it where olrank and lightgbm are
installed."""

import argparse
import functools
import json
import platform
import statistics
import sys
import time
from pathlib import Path

try:
    import lightgbm
    import numpy as np
    from scipy import stats  # lightgbm needs it, too

    import olrank
except ImportError as error:
    print(f"skipped: this Python has no {error.name}; install it, or use a Python that has it")
    sys.exit(0)


class BoostedTrees:
    """LambdaMART on the clicks so far. Everything follows from the trial's seed and feedback."""

    def __init__(self, *, features, cutoff, seed, fold, debiased, first, growth, trees, leaves, regularisation):
        self.seed, self.fold = seed, fold
        self.debiased, self.growth = debiased, growth
        self.due = first
        self.parameters = {
            "objective": "lambdarank", "num_leaves": leaves, "learning_rate": 0.1, "min_data_in_leaf": 20, "num_threads": 1,
            "seed": seed, "deterministic": True, "force_row_wise": True, "verbosity": -1,
            "lambdarank_position_bias_regularization": regularisation,
        }
        self.trees = trees
        self.model = None
        self.docs, self.clicks, self.ranks = [], [], []

    def rank(self, query, round):
        ties = np.random.default_rng((self.seed, self.fold, round)).random(len(query.X))
        return np.lexsort((ties, -self.score(query.X)))

    def learn(self, query, shown, clicks, round):
        self.docs.append(np.array(query.X[shown]))
        self.clicks.append(np.array(clicks))
        self.ranks.append(np.arange(len(shown)))
        if round >= self.due and any(clicked.any() for clicked in self.clicks):
            self.train()
            self.due = max(round + 1, int(round * self.growth))

    def train(self):
        data = lightgbm.Dataset(
            np.concatenate(self.docs), np.concatenate(self.clicks), group=[len(docs) for docs in self.docs],
            position=np.concatenate(self.ranks) if self.debiased else None, free_raw_data=True,
        )
        self.model = lightgbm.train(self.parameters, data, self.trees)

    def score(self, X):
        if self.model is None:
            return np.zeros(len(X))
        return self.model.predict(X, num_threads=1)


def interval(values):
    """Half the width of the 95 % t interval of a mean; None for a single value."""
    if len(values) < 2:
        return None
    return float(stats.t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5)


def numbers(text):
    """Of seeds: 3, or 1-5."""
    first, _, last = text.partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is no seed and no range of seeds, such as 1-5")
    return list(range(int(first), int(last or first) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="synth:mslr-like?queries=300", help="as `olrank run --data` takes it")
    parser.add_argument("--rankers", default="pairrank,pdgd", help="kinds to play beside it, by commas")
    parser.add_argument("--clicks", default="perfect,navigational,informational", help="users, by commas")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=numbers, default=numbers("1-5"), help="such as 1-5")
    parser.add_argument("--first", type=int, default=50, help="round of the first training")
    parser.add_argument("--growth", type=float, default=1.3, help="round of the next training over that of the latest")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--leaves", type=int, default=15)
    parser.add_argument("--regularisation", type=float, default=0.1, help="lambdarank_position_bias_regularization")
    parser.add_argument("--out", help="a folder for the trials; else they are removed")
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    if options.first < 1 or options.growth <= 1.0:
        parser.error("--first must be at least 1 and --growth above 1.")
    boosted = {
        name: functools.partial(BoostedTrees, debiased=debiased, first=options.first, growth=options.growth, trees=options.trees,
                                leaves=options.leaves, regularisation=options.regularisation)
        for name, debiased in (("lightgbm", False), ("lightgbm-debiased", True))
    }
    begin = time.perf_counter()
    try:
        results = olrank.run(
            {
                "data": {"source": options.data},
                "protocol": {"rounds": options.rounds, "seeds": options.seeds},
                "clicks": {"models": options.clicks.split(",")},
                "ranker": [{"kind": kind} for kind in options.rankers.split(",") if kind],
            },
            progress=False, out=options.out, rankers=boosted,
        )
    except olrank.Error as error:
        sys.exit(str(error))
    if unfinished := [trial for trial in results.trials if not trial.finished]:
        sys.exit(f"{len(unfinished)} trials failed, the first in {unfinished[0].folder}; nothing was compared")
    found = {}
    for trial in results.trials:
        last = trial.curve[-1]
        found.setdefault((trial.user, trial.ranker), []).append((last["offline"]["ndcg@10"], last["online"]["cndcg@10"]))
    rows = []
    print(f"{options.rounds} rounds, {len(options.seeds)} seeds; mean and half the width of its 95 % interval")
    print(f"{'user':<14} {'ranker':<18} {'offline NDCG@10':>18} {'discounted NDCG@10':>20}")
    for (user, ranker), figures in sorted(found.items()):
        row = {"user": user, "ranker": ranker, "trials": len(figures)}
        text = []
        for name, values, digits in zip(("offline_ndcg", "discounted_ndcg"), zip(*figures), (4, 1)):
            half = interval(values)
            row |= {name: statistics.fmean(values), f"{name}_half_width": half}
            text.append(f"{row[name]:.{digits}f}" + ("" if half is None else f" ± {half:.{digits}f}"))
        rows.append(row)
        print(f"{user:<14} {ranker:<18} {text[0]:>18} {text[1]:>20}")
    if options.json:
        told = {name: value for name, value in vars(options).items() if name not in ("json", "out")}
        about = {"lightgbm": lightgbm.__version__, "python": platform.python_version(), "seconds": time.perf_counter() - begin}
        Path(options.json).write_text(json.dumps(about | told | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
