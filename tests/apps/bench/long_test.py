"""olrank bench long as a process: its spans against a run of the same trial, and what it refuses."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from command_line import olrank, succeed  # noqa: E402

TRIAL = ("--data", "synth:small?queries=40", "--fold", 1, "--seeds", 3, "--clicks", "perfect", "--rounds", 90)
NETWORK = ("--ranker", "olranknet", "--width", 8)


class BenchLong(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.file = cls.folder / "long.json"
        cls.ran = olrank("bench", "long", *TRIAL, *NETWORK, "--structures", "full,diagonal", "--span", 20, "--json", cls.file)
        assert cls.ran.returncode == 0, cls.ran.stderr
        cls.found = json.loads(cls.file.read_text())

    def test_spans_make_up_the_trial(self):
        self.assertEqual([one["name"] for one in self.found["rankers"]], ["full", "diagonal"])
        for ranker in self.found["rankers"]:
            spans = ranker["spans"]
            self.assertEqual([(span["round"], span["rounds"]) for span in spans], [(20, 20), (40, 20), (60, 20), (80, 20), (90, 10)])
            spent = 0
            for span in spans:
                spent += span["seconds"] * span["rounds"]
                self.assertAlmostEqual(span["mean_seconds"], spent / span["round"], delta=1e-12)
                self.assertAlmostEqual(span["units"], span["seconds"] / span["unit_seconds"], delta=1e-9)
                self.assertGreater(span["checkpoint_bytes"], 0)
                self.assertGreater(span["resident_bytes"], span["checkpoint_bytes"])
                self.assertLessEqual({"train", "width"}, set(span["seconds_by_stage"]))
            self.assertAlmostEqual(ranker["growth"], spans[-1]["seconds"] / spans[2]["seconds"], delta=1e-9)

    def test_resumes_to_the_same_bits(self):
        self.assertTrue(all(ranker["resumes_to_same_bits"] for ranker in self.found["rankers"]))
        self.assertIn("in the same bits", self.ran.stdout)

    def test_plays_the_trial_of_a_run(self):
        for ranker in self.found["rankers"]:
            out = self.folder / ranker["name"]
            succeed("run", *TRIAL, *NETWORK, "--covariance", ranker["name"], "--eval-every", 20, "--out", out)
            lines = (out / "trials/olranknet/perfect/fold1/seed3/curve.jsonl").read_text().splitlines()
            points = {point["round"]: point for point in map(json.loads, lines)}
            for span in ranker["spans"]:
                point = points[span["round"]]
                self.assertEqual((span["pairs"], span["offline_ndcg"]), (point["pairs"], point["offline"]["ndcg@10"]))
                self.assertEqual(span["posterior_bytes"], point["posterior_bytes"])

    def test_refuses_what_it_cannot_play(self):
        for arguments, word in (((*NETWORK, "--structures", "inducing-0"), "--structures: 'inducing-0'"), (("--span", 0), "--span"),
                                ((*NETWORK, "--structures", "fool"), "--structures: 'fool'"), ((*NETWORK, "--structures", "full,full"), "twice"),
                                (("--ranker", "p2neurrank", "--structures", "full"), "widths"), (("--device", "cuda"), "--device")):
            refused = olrank("bench", "long", *TRIAL, *arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(word, refused.stderr)
            self.assertEqual(len(refused.stderr.strip().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
