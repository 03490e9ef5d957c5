"""olrank bench generalisation as a process: the claims of the small study from start to end; commands/run.test has how it resumes."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from command_line import InFolder, succeed  # noqa: E402


class BenchGeneralisation(InFolder):
    def test_the_small_study_runs_to_its_end(self):
        out = self.root / "small"
        found = json.loads(succeed("bench", "generalisation", "--size", "small", "--seeds", "1-2", "--json", "--out", out))
        self.assertEqual(found, json.loads((out / "generalisation.json").read_text()))
        self.assertEqual({claim["experiment"] for claim in found["claims"]}, set("ABCDE"))
        claims = {(claim["subject"], claim["quantity"]): claim for claim in found["claims"]}
        # The sum over pairs grows with m² and its mean over pairs does not: by far more than two seeds scatter.
        of_sum, of_mean = (claims[f"{loss}, noise by query", "b: slope over m"]["mean"] for loss in ("ranksvm", "ranksvm-mean"))
        self.assertAlmostEqual(of_sum - of_mean, 2, delta=0.3)
        self.assertAlmostEqual(claims["ranksvm", "largest ‖∇ₛφ‖₁: slope over m"]["mean"], 2, delta=0.1)
        self.assertLess(claims["noise 0 minus noise 0.3, ogd-average", "slope over n"]["mean"], 0)
        shares = [claim["mean"] for claim in found["claims"] if "largest share" in claim["quantity"]]
        self.assertTrue(shares and all(0 < share < 1 for share in shares), shares)
        self.assertEqual(json.loads((out / "manifest.json").read_text())["kind"], "generalisation")
        figure = next(one for one in found["figures"] if one["name"] == "gap-by-queries-query")
        line = next(one for one in figure["lines"] if one["line"] == "listnet")
        m, n, gaps = 20, 200, []  # the middle length, and the last number of queries
        for seed in (1, 2):
            rows = json.loads((out / f"cells/A-query-m{m}-seed{seed}.json").read_text())["rows"]
            gaps += [row["gap"] for row in rows if (row["loss"], row["n"]) == ("listnet", n)]
        self.assertAlmostEqual(line["points"][-1][1], sum(gaps) / 2, places=12)


if __name__ == "__main__":
    unittest.main()
