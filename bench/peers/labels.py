#!/usr/bin/env python3
"""LTRModel() beside `olrank train`'s defaults, ridge regression and LightGBM, from labels: bench/peers/labels.py DATA [--json FILE]

DATA has mq2008/S1 to S5, clueweb09-webis/S1 to S5 and mslr-sample/{train,test}, as .txt.gz of LETOR text. All get the same inputs,
scaled to [0, 1] within each query, no validation part, and their own defaults. LTRModel's were chosen on the sets of --choosing (MQ2008's first
two folds and generated data); the others are the report. Run it where olrank, scikit-learn and lightgbm are installed."""

import argparse
import json
import pathlib
import platform
import statistics
import sys

try:
    import lightgbm
    import numpy as np
    import sklearn
    from sklearn.linear_model import Ridge

    import olrank
    from olrank.sklearn import LTRModel
except ImportError as error:
    print(f"skipped: this Python has no {error.name}; install it, or use a Python that has it")
    sys.exit(0)


def read(folder, names):
    """Parts of a folder as one data set. A query's inputs are between 0 and 1, which scaling again does not change."""
    parts = [olrank.load_letor(folder / f"{name}.txt.gz") for name in names]
    table, group = np.concatenate([part.X for part in parts]), np.concatenate([part.group for part in parts])
    return scaled(olrank.Dataset.from_arrays(table, np.concatenate([part.y for part in parts]), group=group))


def scaled(data):
    table = data.X.astype(np.float64)
    for begin, end in zip(data.offsets, data.offsets[1:]):
        low, span = table[begin:end].min(axis=0), np.ptp(table[begin:end], axis=0)
        table[begin:end] = np.where(span > 0, (table[begin:end] - low) / np.where(span > 0, span, 1), 0)
    return olrank.Dataset.from_arrays(table, data.y, group=data.group)


def fold(folder, number):
    names = [f"S{(number - 1 + part) % 5 + 1}" for part in range(5)]
    return read(folder, names[:3]), read(folder, names[4:])


def sets(folder, choosing):
    if choosing:
        yield "MQ2008, folds 1 and 2", [fold(folder / "mq2008", number) for number in (1, 2)]
        parts = [scaled(olrank.synthetic("mslr-like", part, queries=300)) for part in ("train", "test")]
        yield "synth:mslr-like?queries=300", [parts]
        return
    yield "MQ2008, folds 3 to 5", [fold(folder / "mq2008", number) for number in (3, 4, 5)]
    yield "ClueWeb09, five folds", [fold(folder / "clueweb09-webis", number) for number in range(1, 6)]
    yield "MSLR sample", [(read(folder / "mslr-sample", ["train"]), read(folder / "mslr-sample", ["test"]))]


def ltr_model(train, test, seed):
    return LTRModel(seed=seed).fit(train.X, train.y, train.group).predict(test.X, test.group)


def olrank_train(train, test, seed):
    return olrank.fit(train, seed=seed, threads=1).score(test.X, test.group)


def ridge(train, test, seed):
    return Ridge().fit(train.X, train.y).predict(test.X)


def boosted_trees(train, test, seed):
    model = lightgbm.LGBMRanker(random_state=seed, n_jobs=1, verbosity=-1)
    return model.fit(train.X, train.y, group=train.group).predict(test.X)


PEERS = {"LTRModel()": ltr_model, "`olrank train`": olrank_train, "ridge": ridge, "LightGBM": boosted_trees}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--choosing", action="store_true", help="the sets on which the defaults were chosen")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for name, folds in sets(options.data, options.choosing):
        row = {"data": name}
        for peer, scores in PEERS.items():
            seeds = range(1, 2 if peer == "ridge" else options.seeds + 1)
            row[peer] = statistics.fmean(
                olrank.evaluate(test, scores(train, test, seed), at=[10])["ndcg@10"] for train, test in folds for seed in seeds
            )
        rows.append(row)
        print(name, *(f"{peer} {row[peer]:.4f}" for peer in PEERS), sep="  ", flush=True)
    if options.json:
        about = {"lightgbm": lightgbm.__version__, "scikit_learn": sklearn.__version__, "python": platform.python_version(), "seeds": options.seeds}
        options.json.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
