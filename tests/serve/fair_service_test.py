"""`olrank serve --groups`: the exposure of two groups stays within its bound, also across a crash."""

import json
import math
import os
import random
import unittest
import urllib.request

from running_service import ServiceTest, Users, logged, succeed

RANKER = ["--ranker", "pairrank", "--features", "4", "--cutoff", "5", "--fair", "fairexp"]
BETA, EPSILON = 1.2, 0.5
GROUPS = ["--groups", f"beta={BETA},epsilon={EPSILON}"]


def unfairness_of(groups):
    """Returns the unfairness of one list, by the definition, with P(r) = 1/log2(1 + r)."""
    return math.fsum((1 if group == "A" else -BETA) / math.log2(2 + rank) for rank, group in enumerate(groups))


class FairUsers(Users):
    """Groups that follow relevance: without care, A is seen far more often."""

    def __init__(self, seed=3):
        super().__init__(seed, 4, docs=12, queries=20)
        for docs in self.queries:
            for doc in docs:
                doc["group"] = "A" if doc["features"][0] > 0.4 else "B"


class FairService(ServiceTest):
    def test_stays_within_its_bound_and_knows_it_after_a_crash(self):
        users, draw = FairUsers(), random.Random(1)
        service = self.start(*RANKER, *GROUPS)
        unfairness = 0.0
        with service.client() as client:
            for number in range(300):
                docs = users.queries[draw.randrange(20)]
                ranking = client.rank(f"q{number % 20}", docs)
                of = {doc["id"]: doc for doc in docs}
                shown = [doc["id"] for doc in ranking["docs"]]
                unfairness += unfairness_of([of[one]["group"] for one in shown])
                self.assertAlmostEqual(ranking["unfairness"], unfairness, 9)
                self.assertTrue(ranking["fair"])
                self.assertLessEqual(abs(unfairness), EPSILON + 1e-9)
                if number % 10 != 7:  # others give no feedback, and are not in the log
                    client.feedback(ranking["impression"], [one for one in shown if of[one]["features"][0] > 0.6])
                if number == 150:
                    client.checkpoint()
            stats = client.wait_until_learned()["fairness"]
            metrics = client.metrics()
        self.assertAlmostEqual(stats["unfairness"], unfairness, 9)
        self.assertEqual((stats["lists"], stats["fair_share"], stats["beta"], stats["epsilon"]), (300, 1.0, BETA, EPSILON))
        self.assertIn(f"\nolrank_unfairness {stats['unfairness']}\n", metrics)
        self.assertIn('\nolrank_exposure_total{group="B"} ', metrics)
        with urllib.request.urlopen(service.url + "/v1/overview", timeout=900) as answer:
            self.assertEqual(json.load(answer)["fairness"], stats)
        service.kill()

        lines = logged(self.state)
        self.assertEqual(len(lines), 270)
        by_hand = sum(unfairness_of(line["groups"]) for line in lines)
        exposure = {group: sum(1 / math.log2(2 + rank) for line in lines for rank, one in enumerate(line["groups"]) if one == group)
                    for group in "AB"}
        service = self.start()
        with service.client() as client:
            restarted = client.stats()["fairness"]
            self.assertAlmostEqual(restarted["unfairness"], by_hand, 9)
            self.assertEqual(restarted["lists"], 270)
            for group in "AB":
                self.assertAlmostEqual(restarted["exposure"][group], exposure[group], 9)
            # The next lists bring it back within the bound, however far the unanswered ones had been from it.
            answers = [client.rank("q", users.queries[number % 20]) for number in range(30)]
        self.assertTrue(answers[-1]["fair"])
        self.assertLessEqual(abs(answers[-1]["unfairness"]), EPSILON)
        self.assertEqual(service.stop(), 0)
        # The model of the stopped service comes from the same log.
        out = self.folder / "model.safetensors"
        succeed("export", "--state", self.state, "--to", "safetensors", "--out", out)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main(verbosity=2)
