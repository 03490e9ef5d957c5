"""What counters of the log bring to the shop of shop.py, and to queries of a LETOR file whose grades click.

    python3 examples/shop/counters.py --letor MQ2008/S1.txt --seeds 2

Each row is a new service, with `clickgp`, which remembers documents by query, or with `pairrank`, which does not. docs/evidence/SHOP.md
has the table, which --record writes. It needs NumPy, and OLRANK_PROGRAM or an `olrank` in the PATH."""

import argparse
import datetime
import gzip
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import numpy
from shop import READ, SEEDS, SHOWN, Client, Shop, catalogue, mean, request, schema

SENT = "and a usual rating where there is none"
COUNTER = '[[feature]]\nname = "{0}"\nkind = "counter"\nof = "click-rate"\nby = "{0}"\nprior = [1, 10]\n'
COUNTERS = {"none": "", "by document": COUNTER.format("document"), "by document and by query": COUNTER.format("document") + COUNTER.format("query")}
RANKERS = ["clickgp", "pairrank"]
QUERIES, LIKED = 100, numpy.array([0.05, 0.4, 0.8])  # of a LETOR file; by grade


class Generated:
    """The shop of shop.py, which sends numbers with logarithms."""

    schema = schema(SENT)

    def __init__(self, seed):
        self.shop = Shop(seed)
        self.random = self.shop.random

    def begin(self, client):
        client.put_docs(catalogue(self.shop, self.schema))

    def visit(self):
        query, person, likes = self.shop.visit()
        return query, request(self.shop, query, person, self.schema)[0], likes

    def own_order(self, query):
        return self.shop.own_order(query)


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

    def begin(self, client):
        client.put_docs([doc for docs in self.lists for _, doc in docs])

    def visit(self):
        query = self.random.choice(len(self.lists), p=self.popularity)
        return query, [{"id": doc["id"]} for _, doc in self.lists[query]], LIKED[[grade for grade, _ in self.lists[query]]]

    def own_order(self, query):
        return numpy.arange(len(self.lists[query]))


def learn(program, users, ranker, counters, lists, seed):
    """The clicks that the last quarter of the lists may expect, of the learner, of the own order, and of the best one."""
    expected = []
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "schema.toml").write_text(users.schema + counters)
        service = subprocess.Popen([program, "serve", "--state", f"{folder}/state", "--schema", f"{folder}/schema.toml", "--port", "0",
                                    "--ranker", ranker, "--seed", str(seed), "--cutoff", str(SHOWN)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            with Client(service.stdout.readline().strip()) as client:
                users.begin(client)
                for one in range(lists):
                    query, docs, likes = users.visit()
                    answer = client.rank(f"query {query}", docs)
                    places = {doc["id"]: place for place, doc in enumerate(docs)}
                    shown = [places[doc["id"]] for doc in answer["docs"]]
                    clicked = users.random.random(len(shown)) < READ[:len(shown)] * likes[shown]
                    client.feedback(answer["impression"], ranks=[int(rank) for rank in numpy.flatnonzero(clicked)])
                    if one >= lists * 3 // 4:
                        expected.append([READ @ likes[order[:SHOWN]] for order in (shown, users.own_order(query), numpy.argsort(-likes))])
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
    return numpy.mean(expected, axis=0)


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
    places = {"the shop": Generated} | ({"MQ2008": lambda seed: Letor(options.letor, seed)} if options.letor else {})
    for place, users in places.items():
        for ranker in RANKERS:
            without = None
            for name, counters in COUNTERS.items():
                trials = numpy.array([learn(program, users(seed), ranker, counters, options.lists, seed) for seed in range(1, options.seeds + 1)])
                without = trials[:, 0] if without is None else without
                more = mean(trials[:, 0] - without, "+.3f") if counters else "–"
                rows.append([place, f"`{ranker}`", name, mean(trials[:, 0], ".3f"), more])
                print(*rows[-1], f"own order {trials[:, 1].mean():.3f}, best {trials[:, 2].mean():.3f}", flush=True)
    if options.record:
        origin = (f"`examples/shop/counters.py`, {SEEDS} seeds, the last {options.lists // 4:,} of {options.lists:,} lists, 95 % t intervals")
        table = {"origin": origin, "recorded": datetime.date.today().isoformat(),
                 "header": ["users", "ranker", "click rates", "clicks a list", "more than without"], "rows": rows}
        tables = json.loads(options.record.read_text()) if options.record.exists() else {"tables": {}}
        tables["tables"]["counters"] = table
        options.record.write_text(json.dumps(tables, ensure_ascii=False))


if __name__ == "__main__":
    main()
