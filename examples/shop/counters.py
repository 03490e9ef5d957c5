"""Measures what counters of the log bring to the shop of shop.py, and to queries of a LETOR file whose grades click.

    python3 examples/shop/counters.py --letor MQ2008/S1.txt --seeds 2

Each row is a new service, with `clickgp`, which remembers documents by query, or with `pairrank`, which does not. docs/evidence/SHOP.md
has the table, which --record writes. It needs NumPy, and OLRANK_PROGRAM or an `olrank` in the PATH."""

import argparse
import gzip
import os
import pathlib

import numpy
from shop import SEEDS, SHOWN, Described, learn, mean, write

SENT = "and a usual rating where there is none"
COUNTER = '[[feature]]\nname = "{0}"\nkind = "counter"\nof = "click-rate"\nby = "{0}"\nprior = [1, 10]\n'
COUNTERS = {"none": "", "by document": COUNTER.format("document"), "by document and by query": COUNTER.format("document") + COUNTER.format("query")}
RANKERS = ["clickgp", "pairrank"]
QUERIES, LIKED = 100, numpy.array([0.05, 0.4, 0.8])  # of a LETOR file; by grade


class Letor:
    """Queries of a file with at least 10 documents of which some are relevant, with the order of the file as the own one."""

    def __init__(self, path, seed):
        lists, open_file = {}, gzip.open if path.suffix == ".gz" else open
        with open_file(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                grade, query, *features = line.split("#")[0].split()
                values = {name: float(value) for name, value in (one.split(":") for one in features)}
                lists.setdefault(query, []).append((int(grade), {"id": number, "features": {f"f{name}": value for name, value in values.items()}}))
        self.lists = [docs for docs in lists.values() if len(docs) >= SHOWN and any(grade for grade, _ in docs)][:QUERIES]
        names = sorted({name for docs in self.lists for _, doc in docs for name in doc["features"]}, key=lambda name: int(name[1:]))
        self.schema = "".join(f'[[feature]]\nname = "{name}"\n' for name in names)
        self.random = numpy.random.default_rng(seed)
        self.popularity = self.random.permutation(1 / numpy.arange(1, len(self.lists) + 1))
        self.popularity /= self.popularity.sum()

    def stored(self):
        return [doc for docs in self.lists for _, doc in docs]

    def visit(self):
        query = self.random.choice(len(self.lists), p=self.popularity)
        return query, f"query {query}", [{"id": doc["id"]} for _, doc in self.lists[query]], None, LIKED[[grade for grade, _ in self.lists[query]]]

    def own_order(self, query):
        return numpy.arange(len(self.lists[query]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--letor", type=pathlib.Path, help="a LETOR file, maybe .gz")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--lists", type=int, default=400)
    parser.add_argument("--record", type=pathlib.Path, help="a file with tables as JSON, to which it adds the figures")
    options = parser.parse_args()
    if options.record and options.seeds != SEEDS:
        parser.error(f"a record has {SEEDS} seeds")
    program, rows = os.environ.get("OLRANK_PROGRAM", "olrank"), []
    places = {"the shop": lambda seed: Described(SENT, seed)} | ({"MQ2008": lambda seed: Letor(options.letor, seed)} if options.letor else {})
    for place, users in places.items():
        for ranker in RANKERS:
            without = None
            for name, counters in COUNTERS.items():
                trials = numpy.array([learn(program, users(seed), options.lists, seed, ["--ranker", ranker], counters)
                                      for seed in range(1, options.seeds + 1)])
                without = trials[:, 0] if without is None else without
                more = mean(trials[:, 0] - without, "+.3f") if counters else "–"
                rows.append([place, f"`{ranker}`", name, mean(trials[:, 0], ".3f"), more])
                print(*rows[-1], f"own order {trials[:, 1].mean():.3f}, best {trials[:, 2].mean():.3f}", flush=True)
    if options.record:
        write(options.record, "counters", f"`examples/shop/counters.py`, {SEEDS} seeds", options.lists,
              ["users", "ranker", "click rates", "clicks a list", "more than without"], rows)


if __name__ == "__main__":
    main()
