"""A generated shop that sends its users' lists and clicks to `olrank serve`, once for each way to describe its products.

    python3 examples/shop/shop.py --seeds 2 --lists 1000 "numbers as they are" "with logarithms"

2,000 products, 300 queries and 5,000 people with a taste of their own. A person reads rank r with probability 1/r^0.8 and clicks what is
liked. docs/evidence/SHOP.md has the table of all ways, which --record writes. It needs NumPy, and OLRANK_PROGRAM or an `olrank` in the PATH."""

import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients/python"))
from olrank_client import Client  # noqa: E402

PRODUCTS, QUERIES, PEOPLE, CATEGORIES, BRANDS, FACTORS = 2000, 300, 5000, 20, 30, 8
CANDIDATES, SHOWN = 40, 10
SEEDS, STUDENT = 10, 2.262
READ = 1 / numpy.arange(1, SHOWN + 1) ** 0.8


def directions(random, middles):
    """A unit vector near each row of the middles."""
    vectors = middles + 0.7 * random.normal(size=middles.shape)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


class Shop:
    def __init__(self, seed):
        random = self.random = numpy.random.default_rng(seed)
        middles = random.normal(size=(CATEGORIES, FACTORS)) / FACTORS**0.5
        quality, self.category = random.normal(size=PRODUCTS), random.integers(CATEGORIES, size=PRODUCTS)
        self.brand = random.integers(BRANDS, size=PRODUCTS)
        self.price = numpy.exp(random.normal(3.5, 0.8, CATEGORIES)[self.category] + random.normal(0, 0.6, PRODUCTS))
        self.sales = numpy.floor(numpy.exp(random.normal(3 + 0.6 * quality, 1.5)))
        self.reviews = random.poisson(0.05 * self.sales)
        stars = 3.5 + 0.7 * quality + random.normal(size=PRODUCTS) / numpy.sqrt(numpy.maximum(self.reviews, 1))
        self.rating = numpy.where(self.reviews > 0, numpy.clip(stars, 1, 5), numpy.nan)
        self.age = random.exponential(200, PRODUCTS)
        self.factors = directions(random, middles[self.category])
        self.people, self.liked = directions(random, numpy.zeros((PEOPLE, FACTORS))), 0.4 * random.normal(size=BRANDS)
        # A query means a category and a price; a fifth of its candidates are of other categories.
        meant = random.integers(CATEGORIES, size=QUERIES)
        self.wish, self.wanted = directions(random, middles[meant]), numpy.log(self.price[random.integers(PRODUCTS, size=QUERIES)])
        self.candidates, self.match, self.appeal = [], [], []
        for query in range(QUERIES):
            own = numpy.flatnonzero(self.category == meant[query])
            own = random.choice(own, min(len(own), CANDIDATES * 4 // 5), replace=False)
            rest = random.choice(numpy.setdiff1d(numpy.arange(PRODUCTS), own), CANDIDATES - len(own), replace=False)
            docs = random.permutation(numpy.concatenate([own, rest]))
            meets = (self.category[docs] == meant[query]) + random.normal(0, 0.5, CANDIDATES)
            self.candidates.append(docs)
            self.match.append(10 + 4 * meets + random.normal(size=CANDIDATES))
            self.appeal.append(1.2 * meets + 0.4 * quality[docs] + 0.2 * numpy.log1p(self.sales[docs]) + self.liked[self.brand[docs]]
                               + 0.3 * numpy.exp(-self.age[docs] / 60) + 0.8 * self.factors[docs] @ self.wish[query]
                               - 0.6 * (numpy.log(self.price[docs]) - self.wanted[query]) ** 2)
        self.usual = float(numpy.quantile(numpy.concatenate(self.appeal), 0.95))
        self.popularity = random.permutation(1 / numpy.arange(1, QUERIES + 1))
        self.popularity /= self.popularity.sum()

    def visit(self):
        """A query, a person, and the probability of a click on each candidate that the person reads."""
        query, person = self.random.choice(QUERIES, p=self.popularity), self.random.integers(PEOPLE)
        taste = 1.2 * self.factors[self.candidates[query]] @ self.people[person]
        return query, person, 1 / (1 + numpy.exp(-2 * (self.appeal[query] + taste - self.usual)))

    def own_order(self, query):
        """Returns the order that the shop has shown so far: by the search engine's score with a little of the sales."""
        return numpy.argsort(-(self.match[query] + 0.5 * numpy.log1p(self.sales[self.candidates[query]])))


NUMBERS = ["match", "price", "sales", "reviews", "rating", "age"]
LOGARITHMS = {"price": "log1p = true", "sales": "log1p = true", "reviews": "log1p = true"}
RATED = {**LOGARITHMS, "rating": "default = 3.5"}
BRAND = f'[[feature]]\nname = "brand"\nkind = "category"\nvalues = {[f"b{brand}" for brand in range(BRANDS)]}\n'
CATEGORY = f'[[feature]]\nname = "category"\nkind = "category"\nvalues = {[f"c{category}" for category in range(CATEGORIES)]}\n'
DISTANCE = '[[feature]]\nname = "from_wanted_price"\n'


def vector(name, more):
    return f'[[feature]]\nname = "{name}"\nkind = "vector"\nlength = {FACTORS}\n{more}\n'


HIDDEN, OF_QUERY = vector("factors", "input = false"), "query = true"
WISH = vector("wish", OF_QUERY) + '[[feature]]\nname = "meets_wish"\ndot = ["wish", "factors"]\n'
TASTE = vector("taste", OF_QUERY) + '[[feature]]\nname = "meets_taste"\ndot = ["taste", "factors"]\n'
# Each way says what the service is told of the numbers, what else the documents have, and which way is the same without that.
WAYS = {
    "numbers as they are": ({}, "", None),
    "with logarithms": (LOGARITHMS, "", "numbers as they are"),
    "and a usual rating where there is none": (RATED, "", "with logarithms"),
    "these and the category": (RATED, CATEGORY, "and a usual rating where there is none"),
    "these and the brand": (RATED, BRAND, "and a usual rating where there is none"),
    "these and the product's vector": (RATED, vector("factors", ""), "and a usual rating where there is none"),
    "these and the query's vector times the product's": (RATED, HIDDEN + WISH, "and a usual rating where there is none"),
    "and how far the price is from the query's": (RATED, HIDDEN + WISH + DISTANCE, "these and the query's vector times the product's"),
    "and the person's vector times the product's": (RATED, HIDDEN + WISH + DISTANCE + TASTE, "and how far the price is from the query's"),
    "all this, with queries typed in four ways": (RATED, HIDDEN + WISH + DISTANCE + TASTE, "and the person's vector times the product's"),
}


def schema(way):
    keys, more, _ = WAYS[way]
    return "".join(f'[[feature]]\nname = "{name}"\n{keys.get(name, "")}\n' for name in NUMBERS) + more


def catalogue(shop, sent):
    """Returns what the shop stores in the service once: each product with the features that no query changes."""
    docs = []
    for product in range(PRODUCTS):
        features = {"price": round(shop.price[product], 2), "sales": int(shop.sales[product]), "reviews": int(shop.reviews[product]),
                    "age": round(shop.age[product], 1)}
        if shop.reviews[product]:
            features["rating"] = round(shop.rating[product], 2)
        if 'name = "category"' in sent:
            features["category"] = f"c{shop.category[product]}"
        if 'name = "brand"' in sent:
            features["brand"] = f"b{shop.brand[product]}"
        if '"factors"' in sent:
            features["factors"] = [round(value, 4) for value in shop.factors[product]]
        docs.append({"id": product, "features": features})
    return docs


def request(shop, query, person, sent):
    """Returns what the shop sends with a query: the candidates, with the features that depend on it, and the vectors of query and person."""
    docs = []
    for product, match in zip(shop.candidates[query], shop.match[query]):
        features = {"match": round(match, 3)}
        if "from_wanted_price" in sent:
            features["from_wanted_price"] = round(abs(numpy.log(shop.price[product]) - shop.wanted[query]), 4)
        docs.append({"id": int(product), "features": features})
    vectors = {"wish": shop.wish[query], "taste": shop.people[person]}
    return docs, {name: [round(value, 4) for value in numbers] for name, numbers in vectors.items() if f'"{name}"' in sent}


class Described:
    """The users of a shop whose requests describe products in one way."""

    def __init__(self, way, seed):
        self.shop, self.schema, self.way = Shop(seed), schema(way), way
        self.random, self.typing, self.own_order = self.shop.random, numpy.random.default_rng(seed), self.shop.own_order

    def stored(self):
        return catalogue(self.shop, self.schema)

    def visit(self):
        """A query and what is typed for it, its documents and vectors, and the probability of a click on each document that is read."""
        query, person, likes = self.shop.visit()
        typed = f"query {query}"
        if self.way.endswith("four ways"):
            typed = [typed, typed.upper(), typed.title(), f" {typed} "][self.typing.integers(4)]
        return query, typed, *request(self.shop, query, person, self.schema), likes


def learn(program, users, lists, seed, flags=(), counters=""):
    """The clicks that the last quarter of the lists may expect, of the learner, of the own order, and of the best one. Says what a list costs."""
    expected, times = [], numpy.zeros((lists, 2))
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "schema.toml").write_text(users.schema + counters)
        service = subprocess.Popen([program, "serve", "--state", f"{folder}/state", "--schema", f"{folder}/schema.toml", "--port", "0", "--seed", str(seed),
                                    "--cutoff", str(SHOWN), *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            with Client(service.stdout.readline().strip()) as client:
                client.put_docs(users.stored())
                for one in range(lists):
                    query, typed, docs, vectors, likes = users.visit()
                    begin = time.perf_counter()
                    answer = client.rank(typed, docs, query_features=vectors or None)
                    times[one, 0] = time.perf_counter() - begin
                    places = {doc["id"]: place for place, doc in enumerate(docs)}
                    shown = [places[doc["id"]] for doc in answer["docs"]]
                    clicked = users.random.random(len(shown)) < READ[:len(shown)] * likes[shown]
                    begin = time.perf_counter()
                    client.feedback(answer["impression"], ranks=[int(rank) for rank in numpy.flatnonzero(clicked)])
                    times[one, 1] = time.perf_counter() - begin
                    if one >= lists * 3 // 4:
                        expected.append([READ @ likes[order[:SHOWN]] for order in (shown, users.own_order(query), numpy.argsort(-likes))])
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()
        ranked, fed = 1000 * numpy.median(times, axis=0)
        size = pathlib.Path(folder, "state/feedback.jsonl").stat().st_size / lists
        print(f"seed {seed}: rank() {ranked:.2f} ms, feedback() {fed:.2f} ms, log {size:,.0f} bytes a list", file=sys.stderr)
    return [round(float(value), 4) for value in numpy.mean(expected, axis=0)]


def mean(values, form):
    """The mean as text, with the interval of Student's t for so many seeds."""
    half = STUDENT * numpy.std(values, ddof=1) / len(values) ** 0.5
    return f"{format(numpy.mean(values), form)} ± {half:.3f}".replace("-", "−")


def write(path, name, origin, lists, header, rows):
    """Adds a table to a file of tables."""
    tables = json.loads(path.read_text()) if path.exists() else {"tables": {}}
    tables["tables"][name] = {"origin": f"{origin}, the last {lists // 4:,} of {lists:,} lists, 95 % t intervals",
                              "recorded": datetime.date.today().isoformat(), "header": header, "rows": rows}
    path.write_text(json.dumps(tables, ensure_ascii=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ways", nargs="*", help=f"of: {', '.join(WAYS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--lists", type=int, default=3000)
    parser.add_argument("--record", help="a file for the figures as JSON")
    options = parser.parse_args()
    unknown = set(options.ways) - set(WAYS)
    if unknown or options.record and options.seeds != SEEDS:
        parser.error(f"there is no way '{min(unknown)}'" if unknown else f"a record has {SEEDS} seeds")
    program, rows, found = os.environ.get("OLRANK_PROGRAM", "olrank"), [], {}
    for way in options.ways or WAYS:
        trials = numpy.array([learn(program, Described(way, seed), options.lists, seed) for seed in range(1, options.seeds + 1)])
        learned, own, best = trials.mean(axis=0)
        print(f"{way:48} {learned:.3f} clicks a list; own order {own:.3f}, best possible {best:.3f}", flush=True)
        found[way], without = trials[:, 0], WAYS[way][2]
        rows.append([way, mean(found[way], ".3f"), mean(found[way] - found[without], "+.3f") if without in found else "–"])
    if options.record:
        rows += [["the shop's own order", mean(trials[:, 1], ".3f"), "–"], ["the best order of each person", mean(trials[:, 2], ".3f"), "–"]]
        write(pathlib.Path(options.record), "ways", f"`examples/shop/shop.py`, {SEEDS} shops", options.lists,
              ["what the shop sends", "clicks a list", "more than without"], rows)


if __name__ == "__main__":
    main()
