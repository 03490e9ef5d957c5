"""Interviews of new users: piped answers, JSON and both trees."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]
SMALL = ["--passes", "1", "--dimension", "5", "--user-depth", "3", "--item-depth", "3"]


def olrank(*words, answers=None):
    return subprocess.run([PROGRAM, *map(str, words)], input=answers, capture_output=True, text=True, timeout=900)


class Interviews(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        data = cls.folder / "reviews.jsonl"
        cls.run_well("recommend", "synth", "trees?users=150&items=60&features=15&reviews=1500", "--out", data)
        for kind in ("fact", "fmf"):
            flags = SMALL if kind == "fact" else ["--passes", "1", "--dimension", "5", "--user-depth", "3"]
            cls.run_well("recommend", "train", "--kind", kind, "--data", data, "--out", cls.folder / kind, *flags)
        cls.run_well("recommend", "train", "--kind", "popular", "--data", data, "--out", cls.folder / "popular")

    @classmethod
    def run_well(cls, *words, answers=None):
        done = olrank(*words, answers=answers)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout

    def trees(self, kind="fact"):
        file = self.folder / f"{kind}-trees.json"
        self.run_well("recommend", "interview", "--model", self.folder / kind, "--trees", file)
        return json.loads(file.read_text())

    def test_answers_lead_through_the_tree(self):
        for kind in ("fact", "fmf"):
            nodes = self.trees(kind)["user_tree"]["nodes"]
            for word, key in (("1", "at_least"), ("<", "below"), ("unknown", "unknown")):
                said = json.loads(self.run_well("recommend", "interview", "--model", self.folder / kind, "--json", "--k", 5,
                                                answers=f"{word}\n" * 9))
                node = 0
                for step in said["steps"]:
                    self.assertEqual((step["node"], step["subject"], step["answer"]), (node, nodes[node]["feature"], key))
                    node = nodes[node][key]
                self.assertTrue(said["finished"])
                self.assertEqual(said["node"], node)
                self.assertNotIn("feature", nodes[node])
                self.assertEqual([item["rank"] for item in said["list"]], [1, 2, 3, 4, 5])
                self.assertEqual(said["list"], said["steps"][-1]["list"])

    def test_speaks_plainly_in_the_terminal(self):
        text = self.run_well("recommend", "interview", "--model", self.folder / "fact", "--k", 3, answers="perhaps\na lot\nquit\n")
        self.assertRegex(text, r"How much does feature\d{3} matter to you\?")
        self.assertIn("'perhaps' is no answer", text)
        self.assertIn("The interview ended early", text)
        early = json.loads(self.run_well("recommend", "interview", "--model", self.folder / "fact", "--json", answers=""))
        self.assertEqual((early["steps"], early["finished"], early["list"]), ([], False, early["before"]))

    def test_refuses_what_it_cannot_ask(self):
        done = olrank("recommend", "interview", "--model", self.folder / "popular", answers="1\n")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("A recommender of kind popular has no tree of questions", done.stderr)
        done = olrank("recommend", "interview", "--model", self.folder / "fact", "--json", answers="perhaps\n")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        done = olrank("recommend", "interview", "--model", self.folder / "fact", "--html", "page.html")
        self.assertIn("--trees FILE has both trees", done.stderr)


if __name__ == "__main__":
    unittest.main()
