"""Shows what rankers do in their bad trials: the tables of docs/evidence/DEFAULTS.md. Plays every ranker of a configuration on several
families of generated data, with three users and 20 seeds, and prints for each family and user the mean and the 10th
percentile over seeds of the final offline NDCG, the mean NDCG of the lists shown, and how many trials ended below a random
order. A gain is such an NDCG on a scale where a random order has 0 and the best mean of the table's rankers 1; the last
line has each ranker's smallest 10th percentile.

Usage: worst_case.py PROGRAM CONFIG [--data NAME=SOURCE[,NORMALISATION]]... [--only FAMILY,...] [--users USER,...]
                     [--seeds 1-20] [--rounds N] [--part test] [--jobs N] [--out DIR]
--data adds data of your own. Finished trials in DIR (default: runs/worst-case) are not played again.
"""

import argparse
import csv
import pathlib
import statistics
import subprocess
import sys

FAMILIES = {
    "raw": ("synth:mslr-like?queries=200&docs=30&features=25&noise=2", "none"),
    "few": ("synth:small?queries=200", "query-minmax"),
    "many": ("synth:yahoo-like?queries=200&features=100", "query-minmax"),
    "noisy": ("synth:mslr-like?queries=200&docs=30&features=50&noise=3", "query-minmax"),
    "linear": ("synth:mslr-like?queries=200&docs=30&features=50&nonlinearity=0", "query-minmax"),
    "nonlinear": ("synth:mslr-like?queries=200&docs=30&features=50&nonlinearity=0.9", "query-minmax"),
    "heavy-tailed": ("synth:mslr-like?queries=200&docs=30&features=50", "zscore"),
}


def tenth_percentile(values):
    return statistics.quantiles(values, n=10, method="inclusive")[0] if len(values) > 1 else values[0]


def column(row, prefix):
    return next(float(value) for name, value in row.items() if name.startswith(prefix + "@"))


def play(options, name, source, normalisation):
    """The rows of summary.csv by user."""
    out = options.out / name
    subprocess.run([options.program, "run", options.config, "--data", source, "--data-normalise", normalisation, "--clicks",
                    options.users, "--seeds", options.seeds, "--rounds", str(options.rounds), "--data-evaluate", options.part,
                    "--out", out, "--jobs", str(options.jobs), "--quiet", "--resume"],
                   check=True, stdout=subprocess.DEVNULL)
    users = {user: [] for user in options.users.split(",")}
    with open(out / "summary.csv", newline="") as file:
        for row in csv.DictReader(file):
            users[row["clicks"]].append(row)
    return users


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("config")
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--only", default=",".join(FAMILIES))
    parser.add_argument("--users", default="perfect,navigational,informational")
    parser.add_argument("--seeds", default="1-20")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--part", default="test")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/worst-case"))
    options = parser.parse_args()

    sources = {name: FAMILIES[name] for name in options.only.split(",") if name}
    for given in options.data:
        name, _, source = given.partition("=")
        source, _, normalisation = source.partition(",")
        sources[name] = (source, normalisation or "query-minmax")

    rankers = []
    worst = {}
    for name, (source, normalisation) in sources.items():
        for user, rows in play(options, name, source, normalisation).items():
            ends, shown = {}, {}
            for row in rows:
                ends.setdefault(row["ranker"], []).append(column(row, "offline_ndcg"))
                shown.setdefault(row["ranker"], []).append(column(row, "online_ndcg"))
            chance = column(rows[0], "random_offline_ndcg")
            if not rankers:
                rankers = list(ends)
                print("| data | user | random |" + "".join(f" {ranker} |" for ranker in rankers))
                print("|---|---|---|" + "---|" * len(rankers), flush=True)
            best = max(sum(values) / len(values) for values in ends.values())
            cells = []
            for ranker in rankers:
                values = ends[ranker]
                low = tenth_percentile(values)
                gain = (low - chance) / (best - chance) if best > chance else low - chance
                if ranker not in worst or gain < worst[ranker][0]:
                    worst[ranker] = (gain, name, user)
                below = sum(value < chance for value in values)
                lists = sum(shown[ranker]) / len(shown[ranker])
                cells.append(f" {sum(values) / len(values):.3f}, {low:.3f}, {lists:.3f}" +
                             (f", **{below} below**" if below else "") + " |")
            print(f"| {name} | {user} | {chance:.3f} |" + "".join(cells), flush=True)
    print("| worst gain | | |" + "".join(f" {gain:.2f} ({name}, {user}) |" for gain, name, user in
                                        (worst[ranker] for ranker in rankers)))


if __name__ == "__main__":
    sys.exit(main())
