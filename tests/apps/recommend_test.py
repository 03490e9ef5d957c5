"""`olrank recommend`: its files, lists that are recomputed here, restarts to the same bits, and what it refuses."""

import json
import math
import signal
import unittest

from command_line import InFolder, has_passes, olrank, summary

DATA = "synth:factors?users=60&items=50&features=8&phrases=4&reviews=700&seed=3"
KINDS = ("mter", "mter-s", "mter-sa", "efm", "bprmf", "nmf", "popular")
FAST = {"mter": 6, "mter-s": 6, "mter-sa": 6, "efm": 4, "bprmf": 6, "nmf": 4, "popular": 1}


class Recommend(InFolder):
    def done(self, *arguments, code=0):
        done = olrank("recommend", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def train(self, *arguments, out="o", kind="mter", data=DATA, code=0):
        return self.done("train", "--kind", kind, "--data", data, "--out", self.root / out, "--passes", FAST[kind],
                         "--quiet", *(() if "--threads" in arguments else ("--threads", 1)), *arguments, code=code)

    def summary(self, out="o"):
        return summary(self.root / out)

    def test_every_kind_trains_lists_and_explains_or_says_that_it_cannot(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.train(kind=kind, out=kind)
                summary = self.summary(kind)
                for cutoff in (10, 20, 50, 100):
                    self.assertTrue(0 <= summary["test"][f"ndcg@{cutoff}"] <= 1)
                curve = [json.loads(line) for line in (self.root / kind / "curve.jsonl").read_text().splitlines()]
                self.assertEqual(len(curve), FAST[kind])
                told = json.loads(self.done("rank", "--model", self.root / kind, "--user", "user00004", "--k", 5, "--json").stdout)
                self.assertEqual([item["rank"] for item in told["items"]], [1, 2, 3, 4, 5])
                scores = [item["score"] for item in told["items"]]
                self.assertEqual(scores, sorted(scores, reverse=True))
                item = told["items"][0]["item"]
                explains = kind.startswith("mter") or kind == "efm"
                explained = self.done("explain", "--model", self.root / kind, "--user", "user00004", "--item", item, "--json",
                                      code=0 if explains else 2)
                if explains:
                    reasons = json.loads(explained.stdout)
                    self.assertEqual(len(reasons["features"]), 3)
                    self.assertEqual(len(reasons["sentences"]), 3)
                if kind == "mter":
                    self.check_wording(kind)

    def check_wording(self, kind):
        """A feature with less than the middle of the scale is none that the user will like."""
        said = set()
        for number in range(40):
            reasons = json.loads(self.done("explain", "--model", self.root / kind, "--user", "user00004", "--item", f"item{number:05}", "--json").stdout)
            for feature, sentence in zip(reasons["features"], reasons["sentences"], strict=True):
                likes = feature["sentiment"] >= (1 + reasons["scale"]) / 2
                self.assertIn(f"You will probably {'like' if likes else 'not like'} the {feature['feature']} of", sentence)
                said.add(likes)
        self.assertEqual(said, {True, False})

    def test_figures_are_those_of_the_lists(self):
        """NDCG@10 of the test part from the TREC run of all users and the reviews themselves."""
        file = self.root / "r.jsonl"
        self.done("synth", DATA.removeprefix("synth:"), "--out", file)
        self.train(kind="bprmf", data=file)
        judged = json.loads(self.done("eval", "--model", self.root / "o", "--json").stdout)
        self.assertEqual(judged["ndcg@10"], self.summary()["test"]["ndcg@10"])
        lists = {}
        for line in self.done("rank", "--model", self.root / "o", "--all-users", "--k", 50, "--trec").stdout.splitlines():
            user, _, item, rank, _, _ = line.split()
            lists.setdefault(user, []).append(item)
            self.assertEqual(int(rank), len(lists[user]))
        reviewed = {}
        for line in file.read_text().splitlines():
            review = json.loads(line)
            reviewed.setdefault(review["user"], set()).add(review["item"])
        items = set().union(*reviewed.values())
        for user, listed in lists.items():  # all items but those of the training
            self.assertEqual(len(listed), len(set(listed)))
            self.assertLessEqual(items - set(listed), reviewed[user])
        # Held out are reviews that a list still has; both parts together.
        parts = [json.loads(self.done("eval", "--model", self.root / "o", "--part", part, "--json").stdout)
                 for part in ("test", "validation")]
        found = {user: [rank for rank, item in enumerate(listed) if item in reviewed[user]] for user, listed in lists.items()}
        held_out = sum(map(len, found.values()))
        summary = self.summary()["data"]
        self.assertLessEqual(held_out, summary["test_reviews"] + summary["validation_reviews"])
        best = sum(sum(1 / math.log2(rank + 2) for rank in ranks if rank < 10) for ranks in found.values())
        # A user's gain is at most that of both parts together.
        self.assertLessEqual(max(part["ndcg@10"] for part in parts), best)

    def test_threads_and_restarts_change_no_bit(self):
        whole = {}
        for kind in ("mter", "efm", "bprmf"):
            self.train(kind=kind, out=kind + "1")
            self.train("--threads", 4, kind=kind, out=kind + "4")
            whole[kind] = self.summary(kind + "1")["result_fingerprint"]
            self.assertEqual(self.summary(kind + "4")["result_fingerprint"], whole[kind])
        long = ["recommend", "train", "--kind", "mter", "--data", DATA, "--passes", 150, "--quiet"]
        self.assertEqual(olrank(*long, "--threads", 2, "--out", self.root / "whole").returncode, 0)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                out = self.root / f"killed{number}"
                command = [*long, "--threads", 1, "--out", out]
                code, said = self.signalled(number, has_passes(out), *command)
                self.assertIn(code, (143, -number, 0), said)
                self.assertFalse((out / "summary.json").exists() and code != 0)
                self.assertEqual(olrank(*command, "--resume").returncode, 0)
                self.assertEqual(summary(out)["result_fingerprint"], self.summary("whole")["result_fingerprint"])


if __name__ == "__main__":
    unittest.main()
