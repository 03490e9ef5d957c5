"""`olrank serve --arms` and `--groups`: whose lists users see, what the log and the figures say about them, the learner's way behind an
existing order, and the exposure of two groups, which stays within its bound, also across a crash."""

import json
import math
import random
import re
import signal
import unittest
import urllib.request

from running_service import ServiceError, ServiceTest, Users, learned_state, logged, succeed, wait_until

RANKER = ["--ranker", "pairrank", "--features", "4", "--cutoff", "5"]
BETA, EPSILON = 1.2, 0.5
GROUPS = ["--fair", "fairexp", "--groups", f"beta={BETA},epsilon={EPSILON}"]


class Shop(Users):
    """Documents whose first feature says what users like, behind an order by the second one, which says nothing."""

    def __init__(self, seed=5):
        super().__init__(seed, 4, docs=8, queries=20)

    def ask(self, client, draw, users=5000, **fields):
        number = draw.randrange(len(self.queries))
        docs = self.queries[number]
        incumbent = [doc["id"] for doc in sorted(docs, key=lambda doc: -doc["features"][1])]
        answer = client.rank(f"q{number}", docs, incumbent=incumbent, user=f"u{draw.randrange(users)}", **fields)
        of = {doc["id"]: doc["features"][0] for doc in docs}
        # People look at the first three, and click what they like.
        clicks = [doc["id"] for doc in answer["docs"][:3] if draw.random() < 0.9 * of[doc["id"]] ** 2]
        return answer, incumbent, clicks


class ArmsTest(ServiceTest):
    def test_the_dashboard_asks_for_metrics_that_are_there(self):
        shop, draw = Shop(), random.Random(7)
        accesses = self.folder / "access.jsonl"
        service = self.start(*RANKER, "--arms", "learner=50,incumbent=50", "--access-log", accesses)
        with service.client() as client:
            for _ in range(120):
                answer, _, clicks = shop.ask(client, draw)
                client.feedback(answer["impression"], clicks)
            client.wait_until_learned()
            metrics = client.metrics()
        accesses.rename(self.folder / "earlier.jsonl")
        service.process.send_signal(signal.SIGHUP)
        trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        headers = [f"00-{trace}-{parent}-01", f"cc-{trace}-{parent}-01-more",  # and none that the standard allows:
                   f"00-{trace}-{parent}-01-more", f"00-{'0' * 32}-{parent}-01", f"00-{trace.upper()}-{parent}-01", "00-1"]
        wait_until(accesses.exists, "the access log is not opened again")
        for header in headers:
            urllib.request.urlopen(urllib.request.Request(service.url + "/healthz", headers={"traceparent": header})).read()
        self.assertIn("\nolrank_answered_lists_total 120\n", metrics)
        clicked = [sum(line["clicks"][rank] for line in logged(self.state)) for rank in range(5)]
        for rank, clicks in enumerate(clicked, 1):
            self.assertIn(f'\nolrank_clicks_total{{rank="{rank}"}} {clicks}\n', metrics)

        self.assertEqual(service.stop(), 0)
        traced = [json.loads(line) for line in accesses.read_text().splitlines()]
        self.assertEqual([line.get("trace_id") for line in traced], [trace, trace, None, None, None, None])
        self.assertEqual(traced[0]["parent_id"], parent)
        lines = [json.loads(line) for line in (self.folder / "earlier.jsonl").read_text().splitlines()]
        self.assertGreater(len(lines), 241)
        self.assertEqual(set(lines[0]), {"time", "method", "path", "status", "seconds", "bytes"})
        self.assertEqual({line["path"] for line in lines} - {"/v1/stats"}, {"/v1/rank", "/v1/feedback", "/metrics"})
        self.assertTrue(all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines))
        self.assertIn("open", self.refused("--access-log", self.folder, code=1))

    def test_users_keep_their_arm_and_a_crash_loses_nothing(self):
        shop, draw = Shop(), random.Random(2)
        service = self.start(*RANKER, "--arms", "learner=50,incumbent=50")
        arm_of = {}
        with service.client() as client:
            for number in range(400):
                user = f"u{draw.randrange(100)}"
                docs = shop.queries[number % 20]
                answer = client.rank("q", docs, incumbent=[doc["id"] for doc in docs], user=user)
                self.assertEqual(arm_of.setdefault(user, answer["arm"]), answer["arm"])
                client.feedback(answer["impression"], [0] if answer["arm"] == "learner" else [])
                if number == 200:
                    client.checkpoint()
            client.wait_until_learned()
            before = client.arms()
        self.assertEqual(set(arm_of.values()), {"learner", "incumbent"})
        self.assertGreater(before["arms"][0]["difference"]["low"], 0)
        service.kill()

        # Later starts need no flags, and count the log to the same figures.
        service = self.start()
        with service.client() as client:
            client.wait_until_ready()
            self.assertEqual(client.arms(), before)
            docs = shop.queries[0]
            for user, arm in arm_of.items():
                self.assertEqual(client.rank("q", docs, incumbent=[doc["id"] for doc in docs], user=user)["arm"], arm)
            fingerprint = client.stats()["fingerprint"]
        self.assertEqual(service.stop(), 0)
        self.assertEqual(learned_state(self.state)["fingerprint"], fingerprint)

        # Other arms begin at nothing; the earlier ones, told again, have their figures.
        service = self.start("--arms", "learner=20,incumbent=80")
        with service.client() as client:
            self.assertEqual([arm["lists"] for arm in client.arms()["arms"]], [0, 0])
        self.assertEqual(service.stop(), 0)
        service = self.start("--arms", "learner=50,incumbent=50")
        with service.client() as client:
            self.assertEqual(client.arms(), before)
        self.assertEqual(service.stop(), 0)

        service = self.start("--arms", "none")
        with service.client() as client:
            answer = client.rank("q", shop.queries[0])
            self.assertNotIn("arm", answer)
            with self.assertRaises(ServiceError) as refused:
                client.arms()
            self.assertEqual(refused.exception.status, 404)
        self.assertEqual(service.stop(), 0)
        self.assertEqual(self.start().stop(), 0)

    def test_the_learners_lists_keep_near_the_incumbent_order(self):
        shop, draw = Shop(), random.Random(3)
        service = self.start(*RANKER, "--arms", "learner=100,incumbent=0,keep_top=1,max_displacement=2")
        moved = 0
        with service.client() as client:
            for _ in range(50):
                answer, incumbent, _ = shop.ask(client, draw, k=8)
                shown = [doc["id"] for doc in answer["docs"]]
                self.assertEqual((answer["arm"], shown[0], answer["propensity"]), ("learner", incumbent[0], None))
                self.assertTrue(all(abs(incumbent.index(one) - rank) <= 2 for rank, one in enumerate(shown)))
                moved += shown != incumbent
        self.assertGreater(moved, 25)

    def test_interleaves_two_arms(self):
        shop, draw = Shop(), random.Random(4)
        service = self.start(*RANKER, "--arms", "learner=50,incumbent=50,interleave=true")
        won = [0, 0]
        with service.client() as client:
            for _ in range(200):
                answer, _, clicks = shop.ask(client, draw, explore=False)
                self.assertEqual((answer["arm"], answer["propensity"]), ("drafted", None))
                client.feedback(answer["impression"], clicks)
            client.wait_until_learned()
            arms = client.arms()
        for line in logged(self.state):
            # Each picks first in one of two ranks.
            self.assertEqual(line["teams"][:4].count("A"), 2)
            gain = sum((1 if team == "A" else -1) * click for team, click in zip(line["teams"], line["clicks"]))
            won[0] += gain > 0
            won[1] += gain < 0
        self.assertEqual(arms["interleaved"]["wins"], won)
        self.assertEqual(sum(won) + arms["interleaved"]["ties"], 200)


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
    unittest.main(verbosity=2)
