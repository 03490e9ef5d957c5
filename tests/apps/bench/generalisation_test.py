"""olrank bench generalisation as a process: the small study from start to end, equal bytes from any number of jobs and
shards, resuming, errors."""

import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from command_line import CommandTest, olrank  # noqa: E402

# A few seconds: two lengths of A and the online experiments.
TINY = ("--size", "small", "--experiments", "A,C,E", "--lengths", "5,10", "--queries", "20,40", "--online-queries", "20,60",
        "--held-out", "200", "--seeds", "1-2")


def study(out, *arguments):
    return olrank("bench", "generalisation", *arguments, "--out", out)


def contents(out):
    """Everything that says nothing about time: cells, claims and figures."""
    files = [*sorted((out / "cells").iterdir()), out / "generalisation.json"]
    return {file.relative_to(out): file.read_bytes() for file in files}


def write_data(folder):
    """Three parts of 30 queries, each with 12 documents whose grade follows the first feature."""
    draw = random.Random(5)
    folder.mkdir()
    for part in ("train", "vali", "test"):
        lines = []
        for query in range(30):
            for _ in range(12):
                values = [draw.random() for _ in range(4)]
                grade = sum(values[0] + 0.2 * draw.random() > bound for bound in (0.6, 0.9))
                lines.append(f"{grade} qid:{part}{query} " + " ".join(f"{k + 1}:{value:.5f}" for k, value in enumerate(values)))
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")


class BenchGeneralisation(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.out = cls.root / "tiny"
        done = study(cls.out, *TINY)
        assert done.returncode == 0, done.stderr
        cls.table = done.stdout
        cls.whole = contents(cls.out)

    def test_the_small_study_runs_to_its_end(self):
        out = self.root / "small"
        done = study(out, "--size", "small", "--seeds", "1-2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
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

    def test_gaps_in_the_claims_are_those_of_the_cells(self):
        found = json.loads((self.out / "generalisation.json").read_text())
        figure = next(one for one in found["figures"] if one["name"] == "gap-by-queries-query")
        line = next(one for one in figure["lines"] if one["line"] == "listnet")
        gaps = []
        for seed in (1, 2):
            rows = json.loads((self.out / f"cells/A-query-m10-seed{seed}.json").read_text())["rows"]
            gaps += [row["gap"] for row in rows if (row["loss"], row["n"]) == ("listnet", 40)]
        self.assertAlmostEqual(line["points"][-1][1], sum(gaps) / 2, places=12)

    def test_jobs_and_shards_change_no_byte(self):
        out = self.root / "jobs"
        self.assertEqual(study(out, *TINY, "--jobs", 2).returncode, 0)
        self.assertEqual(contents(out), self.whole)
        out = self.root / "shards"
        first = study(out, *TINY, "--shard", "0/2")
        self.assertEqual((first.returncode, first.stdout), (0, ""))
        self.assertIn("of other shards are missing", first.stderr)
        second = study(out, *TINY, "--shard", "1/2")
        self.assertEqual((second.returncode, second.stdout), (0, self.table))
        self.assertEqual(contents(out), self.whole)

    def test_resuming_computes_what_is_missing(self):
        out = self.root / "resumed"
        self.assertEqual(study(out, *TINY).returncode, 0)
        self.assertEqual(study(out, *TINY).returncode, 2)
        cells = sorted((out / "cells").iterdir())
        for cell in cells[::2]:
            cell.unlink()
        (out / "generalisation.json").unlink()
        kept = {cell: cell.stat().st_mtime_ns for cell in cells[1::2]}
        done = study(out, *TINY, "--resume")
        self.assertEqual((done.returncode, done.stdout), (0, self.table))
        self.assertIn(f"{len(cells[::2])} cells to compute, of {len(cells)} in all", done.stderr)
        self.assertEqual(contents(out), self.whole)
        self.assertEqual({cell: cell.stat().st_mtime_ns for cell in kept}, kept)
        other = study(out, *("300" if word == "200" else word for word in TINY), "--resume")
        self.assertEqual(other.returncode, 2)
        self.assertIn("was made with other sizes or data", other.stderr)
        self.assertEqual(study(out, *TINY, "--force").returncode, 0)
        self.assertEqual(contents(out), self.whole)

    def test_real_lists_are_sampled(self):
        data = self.root / "data"
        write_data(data)
        out = self.root / "real"
        done = study(out, "--size", "small", "--experiments", "A", "--lengths", "5", "--queries", "20", "--held-out", "100",
                     "--seeds", "1-2", "--data", data, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["data"], [{"name": "data", "queries": 90, "of": 90, "longest": 10}])
        rows = json.loads((out / "cells/A-real-data-seed1.json").read_text())["rows"]
        self.assertEqual({(row["m"], row["n"]) for row in rows}, {(5, 45), (10, 45)})


if __name__ == "__main__":
    unittest.main()
