#!/usr/bin/env python3
"""Plays LightGBM's LambdaMART in an experiment of configs/choosing: bench/peers/lightgbm_rounds.py CONFIG OUT

It learns online as one would use it in practice: it is trained again on the whole log of shown lists and clicks, at rounds
that grow by a factor, and lists are by its scores in between; documents of equal scores come in random order. One version
takes clicks as grades, the other gives the ranks of the documents to LightGBM's position debiasing. Their trials are those
of an experiment, so that users, queries, coins and figures are those of the configuration's rankers, and
`evidence/choosing.py --add` takes them into its tables. Run it where olrank and lightgbm are installed."""

import argparse
import functools
import sys
import tomllib
from pathlib import Path

try:
    import lightgbm
    import numpy as np

    import olrank
except ImportError as error:
    print(f"skipped: this Python has no {error.name}; install it, or use a Python that has it")
    sys.exit(0)


FIRST, GROWTH, TREES = 50, 1.3, 100  # the round of the first training, that of the next over that of the latest, and trees
SETTINGS = {"objective": "lambdarank", "num_leaves": 15, "learning_rate": 0.1, "min_data_in_leaf": 20, "num_threads": 1, "deterministic": True,
            "force_row_wise": True, "verbosity": -1, "lambdarank_position_bias_regularization": 0.1}


class BoostedTrees:
    """LambdaMART on the clicks so far. Everything follows from the trial's seed and feedback."""

    def __init__(self, *, features, cutoff, seed, fold, debiased):
        self.seed, self.fold, self.debiased, self.due, self.model = seed, fold, debiased, FIRST, None
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
            self.due = max(round + 1, int(round * GROWTH))

    def train(self):
        data = lightgbm.Dataset(
            np.concatenate(self.docs), np.concatenate(self.clicks), group=[len(docs) for docs in self.docs],
            position=np.concatenate(self.ranks) if self.debiased else None, free_raw_data=True,
        )
        self.model = lightgbm.train({**SETTINGS, "seed": self.seed}, data, TREES)

    def score(self, X):
        if self.model is None:
            return np.zeros(len(X))
        return self.model.predict(X, num_threads=1)


def numbers(text):
    """Reads seeds or folds: 3, or 1-5."""
    first, _, last = text.partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is no number and no range, such as 1-5")
    return list(range(int(first), int(last or first) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", help="such as configs/choosing/mq2008.toml; its rankers are left out")
    parser.add_argument("out", help="a folder for the trials; one that was interrupted goes on")
    parser.add_argument("--data", help="where the configuration's data are")
    parser.add_argument("--clicks", help="users, by commas; else all of the configuration")
    parser.add_argument("--seeds", type=numbers, help="such as 1-5; else those of the configuration")
    options = parser.parse_args()
    boosted = {name: functools.partial(BoostedTrees, debiased=debiased) for name, debiased in (("lightgbm", False), ("lightgbm-debiased", True))}
    config = tomllib.loads(Path(options.config).read_text())
    config |= {"ranker": [], "run": {"jobs": 1, "threads": 1}}
    if options.data:
        config["data"]["source"] = options.data
    if options.clicks:
        config["clicks"]["models"] = options.clicks.split(",")
    if options.seeds:
        config["protocol"]["seeds"] = options.seeds
    try:
        results = olrank.run(config, out=options.out, resume=Path(options.out).exists(), rankers=boosted)
    except olrank.Error as error:
        sys.exit(str(error))
    if unfinished := [trial for trial in results.trials if not trial.finished]:
        sys.exit(f"{len(unfinished)} trials failed, the first in {unfinished[0].folder}")


if __name__ == "__main__":
    main()
