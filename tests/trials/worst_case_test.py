"""PairRank's defaults do not lock in on early noisy clicks. With the defaults of earlier versions (adjacent pairs, alpha =
0.003, lambda = 100) some of 20 trials with noisy clicks on 25 features of raw scale end below a random order."""

import csv
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]
DATA = "synth:mslr-like?queries=200&features=25&noise=2"


class WorstCase(unittest.TestCase):
    def below_random(self, *settings):
        """Counts those of 20 trials that end below a random order."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "run", "--data", DATA, "--data-normalise", "none", "--ranker", "pairrank", "--clicks",
                            "informational", "--rounds", "1000", "--seeds", "1-20", "--protocol-eval-every", "500",
                            "--out", folder, "--jobs", "2", "--quiet", *settings],
                           check=True, capture_output=True, timeout=900)
            with open(pathlib.Path(folder) / "summary.csv", newline="") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 20)
        return sum(float(row["offline_ndcg@10"]) < float(row["random_offline_ndcg@10"]) for row in rows)

    def test_adjacent_pairs_with_a_tiny_alpha_collapse(self):
        # Without this the other test could not fail.
        self.assertGreater(self.below_random("--pairs", "adjacent", "--alpha", "0.003", "--lambda", "100"), 0)

    def test_defaults_never_end_below_a_random_order(self):
        self.assertEqual(self.below_random(), 0)


if __name__ == "__main__":
    unittest.main()
