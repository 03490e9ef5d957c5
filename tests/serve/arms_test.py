"""`olrank serve --arms`: whose lists users see, what the log and the figures say about them, and the learner's way behind an
existing order."""

import json
import random
import re
import signal
import unittest
import urllib.request

from running_service import ServiceError, ServiceTest, Users, learned_state, logged, wait_until

RANKER = ["--ranker", "pairrank", "--features", "4", "--cutoff", "5"]


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


if __name__ == "__main__":
    unittest.main(verbosity=2)
