"""`olrank recommend`: its files, lists that are recomputed here, restarts to the same bits, and what it refuses."""

import json
import math
import resource
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, InFolder, olrank, succeed

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
        return json.loads((self.root / out / "summary.json").read_text())

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
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                out = self.root / f"killed{number}"
                command = [PROGRAM, "recommend", "train", "--kind", "mter", "--data", DATA, "--out", out, "--passes",
                           "150", "--threads", "1", "--quiet"]
                program = subprocess.Popen(list(map(str, command)))
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline:
                    curve = out / "curve.jsonl"
                    if curve.exists() and curve.read_text().count("\n") >= 3:
                        break
                    time.sleep(0.02)
                program.send_signal(number)
                code = program.wait(timeout=900)
                self.assertIn(code, (143, -number, 0))
                self.assertFalse((out / "summary.json").exists() and code != 0)
                self.assertEqual(olrank(*command[1:], "--resume").returncode, 0)
                if number == signal.SIGTERM:
                    reference = json.loads((out / "summary.json").read_text())["result_fingerprint"]
                else:
                    self.assertEqual(json.loads((out / "summary.json").read_text())["result_fingerprint"], reference)
        uninterrupted = self.root / "whole"
        self.assertEqual(olrank("recommend", "train", "--kind", "mter", "--data", DATA, "--out", uninterrupted, "--passes",
                                150, "--threads", 2, "--quiet").returncode, 0)
        self.assertEqual(json.loads((uninterrupted / "summary.json").read_text())["result_fingerprint"], reference)

    def test_a_full_disk_leaves_a_folder_that_continues(self):
        train = ["train", "--data", "synth:trees?users=60&items=40&reviews=300", "--kind", "fact", "--passes", 2, "--quiet"]
        for limit in (500, 3000, 20000):
            out = self.root / f"limit{limit}"

            def small_files(limit=limit):
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

            stopped = olrank("recommend", *train, "--out", out, preexec_fn=small_files)
            self.assertEqual(stopped.returncode, 1, stopped.stderr)
            self.done(*train, "--out", out, "--resume")

    def test_several_models_are_compared_over_users(self):
        self.train(kind="popular", out="a")
        self.train(kind="bprmf", out="b")
        both = json.loads(self.done("eval", "--model", self.root / "a", "--model", self.root / "b", "--json").stdout)
        against = both[1]["against_first"]["ndcg@50"]
        self.assertAlmostEqual(against["difference"], both[1]["ndcg@50"] - both[0]["ndcg@50"], places=9)
        self.assertTrue(0 <= against["p"] <= against["p_holm"] <= 1)
        text = self.done("eval", "--model", self.root / "a", "--model", self.root / "b").stdout
        self.assertIn("p after Holm's correction", text)

    def test_a_study_trains_each_cell_once(self):
        config = self.root / "s.toml"
        config.write_text(f"""[recommend]
passes = 3
dimension = 4

[recommend_study]
kinds = ["bprmf", "popular"]
data = ["{DATA.replace('seed=3', 'seed={seed}')}"]
seeds = [1, 2, 3]
sweep = "factor_penalty"
values = ["0.01", "0.1"]
baseline = "popular"
""")
        first = self.done("study", config, "--out", self.root / "s", "--json", "--quiet")
        rows = json.loads(first.stdout)
        self.assertEqual([(row["kind"], row["value"]) for row in rows], [("bprmf", "0.01"), ("bprmf", "0.1"), ("popular", "")])
        self.assertIn("p", rows[0]["ndcg@50"])
        cells = {file: file.stat().st_mtime_ns for file in (self.root / "s/cells").iterdir()}
        self.assertEqual(len(cells), 9)
        self.assertEqual(self.done("study", config, "--out", self.root / "s", "--json", "--quiet").stdout, first.stdout)
        self.assertEqual({file: file.stat().st_mtime_ns for file in cells}, cells)
        self.assertEqual(len((self.root / "s/results.csv").read_text().splitlines()), 10)
        tuned = succeed("tune", config, "--out", self.root / "s", "--json", "--quiet")
        best = max((row for row in rows if row["kind"] == "bprmf"), key=lambda row: row["validation"])
        chosen = json.loads(tuned)
        self.assertEqual([(row["kind"], row["value"]) for row in chosen], [("bprmf", best["value"]), ("popular", "")])
        self.assertEqual(chosen[0]["ndcg@50"]["mean"], best["ndcg@50"]["mean"])


if __name__ == "__main__":
    unittest.main()
