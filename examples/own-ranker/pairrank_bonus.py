"""PairRank inside, with its scores, widths and learning, and an order of its own: documents whose place is uncertain move up."""

import numpy as np

import olrank


class Bonus:
    def __init__(self, features, cutoff, seed, fold, bonus=0.5):
        self.bonus = bonus
        self.inner = olrank.Ranker("pairrank", features=features, cutoff=cutoff, seed=seed, fold=fold, normalise="none")

    def rank(self, query, round):
        uncertain = self.inner.widths(query.X).mean(axis=1)
        return np.argsort(-(self.inner.score(query.X) + self.bonus * uncertain), kind="stable")

    def certain_orders(self, query):
        scores = self.inner.score(query.X)
        return np.argwhere(scores[:, None] - scores > self.inner.widths(query.X))

    def learn(self, query, shown, clicks, round):
        self.inner.learn(self.inner.shown_list(query.X, shown, query.qid), clicks)

    def score(self, X):
        return self.inner.score(X)


def main(source="synth:mslr-like?queries=500&test_queries=200", rounds=2000, seeds=10, out="runs/bonus"):
    protocol = {"rounds": rounds, "seeds": list(range(1, seeds + 1))}
    config = {"data": {"source": source}, "clicks": {"models": ["navigational"]}, "protocol": protocol, "ranker": [{"kind": "pairrank"}]}
    return olrank.run(config, out=out, rankers={"bonus": Bonus})


if __name__ == "__main__":
    main().plot().save("bonus.svg")
