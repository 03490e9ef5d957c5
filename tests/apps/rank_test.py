"""Scores of saved models; commands/data.test has their lists, from every form of the data."""

import json
import unittest

from command_line import InFolder, curve, succeed, trial_of
from saved_models import write_safetensors


class Rank(InFolder):
    def test_scores_are_the_mean_over_members(self):
        tensors = {"members.0.layers.0.weight": ([1, 1], [2.0]), "members.0.layers.0.bias": ([1], [-1.0]),
                   "members.0.layers.1.weight": ([1, 1], [3.0]), "members.0.layers.1.bias": ([1], [0.5]),
                   "members.1.layers.0.weight": ([1, 1], [-1.0]), "members.1.layers.0.bias": ([1], [4.0]),
                   "members.1.layers.1.weight": ([1, 1], [1.0]), "members.1.layers.1.bias": ([1], [0.0])}
        about = {"architecture": "relu", "width": "1", "depth": "2", "parameterisation": "standard", "members": "2"}
        data = self.folder / "d.txt"
        data.write_text("0 qid:1 1:0\n0 qid:1 1:1\n0 qid:1 1:10\n")
        # (0.5 + 4) / 2, (3.5 + 3) / 2, (57.5 + 0) / 2
        for scale, scores in (({}, "2.25\n3.25\n28.75\n"), ({"output_scale": "-2"}, "-4.5\n-6.5\n-57.5\n")):
            write_safetensors(self.folder / "model", tensors, about | scale)
            self.assertEqual(succeed("rank", "--model", self.folder / "model", "--data", data, "--format", "scores", "--out", "-"), scores)
    SOURCE = "synth:small?queries=40&test_queries=20"

    def test_eval_matches_the_last_point_of_the_curve(self):
        kinds = ("pairrank", "olranknet", "p2neurrank", "ranknet", "lambdarank-labels")
        succeed("run", "--quiet", "--data", self.SOURCE, "--rounds", 60, "--protocol-eval-every", 30, "--seeds", 5, "--clicks", "navigational",
                "--ranker", ",".join(kinds), "--width", 8, "--out", self.folder)
        for kind in kinds:
            trial = trial_of(self.folder, kind, "navigational", 5)
            found = json.loads(succeed("eval", "--data", self.SOURCE, "--model", trial, "--at", "10", "--json"))
            self.assertAlmostEqual(found["metrics"]["ndcg@10"], curve(trial)[-1]["offline"]["ndcg@10"], delta=1e-6, msg=kind)


if __name__ == "__main__":
    unittest.main()
