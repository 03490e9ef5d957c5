"""Eight people with tastes of their own: pairrank with features of the person against pairrank without, ten seeds."""

import json

import numpy as np

import olrank

PEOPLE = 8


class Tastes:
    """Each person likes some features; clicks on what is liked and good, further down less often."""

    people = PEOPLE

    def __init__(self, seed, features):
        self.tastes = np.random.default_rng(seed).normal(size=(PEOPLE, features))
        self.gains = {}  # by round: NDCG of the list by what the person likes; it changes no click

    def click(self, query, shown, round):
        likes = query.X @ self.tastes[query.person]
        liked = (likes.argsort().argsort() / len(likes)) ** 2 * (0.5 + query.grades / 8)  # [0, 1]
        discounts = 1 / np.log2(np.arange(len(shown)) + 2)
        self.gains[round] = float(liked[shown] @ discounts / (np.sort(liked)[::-1][: len(shown)] @ discounts))
        examined = [query.coin(doc, "examination") < 1 / (rank + 1) ** 0.5 for rank, doc in enumerate(shown)]
        clicks = [seen and query.coin(doc) < liked[doc] for seen, doc in zip(examined, shown, strict=True)]
        return clicks, examined


class Personal:
    """Pairrank on features of a document, and the same once more in the place of the person who asks."""

    def __init__(self, features, cutoff, seed, fold):
        self.inner = olrank.Ranker("pairrank", features=features * (1 + PEOPLE), cutoff=cutoff, seed=seed, fold=fold, normalise="none")

    def _documents(self, query):
        places = np.zeros((len(query.X), 1 + PEOPLE, query.X.shape[1]), dtype=np.float32)
        places[:, 0] = places[:, 1 + query.person] = query.X
        return places.reshape(len(query.X), -1)

    def rank(self, query, round):
        self.shown = self.inner.rank(self._documents(query), qid=f"{query.qid} {query.person}")
        return self.shown.docs

    def learn(self, query, shown, clicks, round):
        self.inner.learn(self.shown, clicks)

    def score(self, X, query):
        return self.inner.score(self._documents(query))


def gain(seed, rounds, source, **own):
    """The mean NDCG, by the taste of who asks, of the lists in the second half."""
    user = Tastes(seed, olrank.synthetic("small", queries=1).features)
    config = {"data": {"source": source}, "protocol": {"rounds": rounds, "eval_every": rounds, "seeds": [seed]}}
    olrank.run(config | ({} if own else {"ranker": [{"kind": "pairrank"}]}), progress=False, users={"tastes": user}, **own)
    return float(np.mean([user.gains[round] for round in range(rounds // 2 + 1, rounds + 1)]))


def main(rounds=4000, seeds=10, source="synth:small?queries=200"):
    numbers = range(1, seeds + 1)
    gains = {"pairrank": np.array([gain(seed, rounds, source) for seed in numbers])}
    gains["personal"] = np.array([gain(seed, rounds, source, rankers={"personal": Personal}) for seed in numbers])
    gains["difference"] = gains["personal"] - gains["pairrank"]
    t = {2: 12.706, 10: 2.262}[seeds] / seeds**0.5  # 97.5 % of Student's t
    means = {name: {"mean": of.mean(), "half_width": t * of.std(ddof=1)} for name, of in gains.items()}
    return {"rounds": rounds, "seeds": list(numbers), "people": PEOPLE, "ndcg": means}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
