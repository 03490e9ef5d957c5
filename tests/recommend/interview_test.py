"""Interviews of new users by JSON and both trees; tests/apps/commands/run.test has what a terminal shows."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from command_line import CommandTest, olrank, succeed  # noqa: E402


class Interviews(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        data = cls.folder / "reviews.jsonl"
        succeed("recommend", "synth", "trees?users=150&items=60&features=15&reviews=1500", "--out", data)
        small = ("--passes", 1, "--dimension", 5, "--user-depth", 3)
        for kind, flags in (("fact", (*small, "--item-depth", 3)), ("fmf", small)):
            succeed("recommend", "train", "--kind", kind, "--data", data, "--out", cls.folder / kind, *flags)

    def interview(self, kind, *words, answers):
        done = olrank("recommend", "interview", "--model", self.folder / kind, *words, input=answers)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def test_answers_lead_through_the_tree(self):
        for kind in ("fact", "fmf"):
            self.interview(kind, "--trees", self.folder / "trees.json", answers="")
            nodes = json.loads((self.folder / "trees.json").read_text())["user_tree"]["nodes"]
            for word, key in (("1", "at_least"), ("<", "below"), ("unknown", "unknown")):
                said = self.interview(kind, "--json", "--k", 5, answers=f"{word}\n" * 9)
                node = 0
                for step in said["steps"]:
                    self.assertEqual((step["node"], step["subject"], step["answer"]), (node, nodes[node]["feature"], key))
                    node = nodes[node][key]
                self.assertTrue(said["finished"])
                self.assertEqual(said["node"], node)
                self.assertNotIn("feature", nodes[node])
                self.assertEqual([item["rank"] for item in said["list"]], [1, 2, 3, 4, 5])
                self.assertEqual(said["list"], said["steps"][-1]["list"])
        early = self.interview("fact", "--json", answers="")
        self.assertEqual((early["steps"], early["finished"], early["list"]), ([], False, early["before"]))


if __name__ == "__main__":
    unittest.main()
