"""olrank bench ops, round, scale and data from outside: what is measured, shares, files and comparisons. Sizes are small:
shares are not judged here, but none may be above its ceiling."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]
OPERATIONS = pathlib.Path("core/ops")
SMALL = ("--pairs", 300, "--docs", 40, "--width", 16, "--features", 46)
# No operation of its own: what GPUs there are, and the passes inside score_docs and pair_gradient.
NOT_MEASURED = {"visible_gpus", "relu_layers"}


def olrank(*arguments):
    return subprocess.run([PROGRAM, "bench", *map(str, arguments)], capture_output=True, text=True, timeout=300)


class BenchOps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.file = pathlib.Path(cls.folder.name) / "ops.json"
        # A share above its ceiling is an error of counting when it comes back; once, it may be the machine's.
        for _ in range(3):
            cls.ran = olrank("ops", *SMALL, "--json", cls.file)
            if cls.ran.returncode == 0:
                break
        assert cls.ran.returncode == 0, cls.ran.stderr
        cls.measured = json.loads(cls.file.read_text())

    def test_every_operation_is_there(self):
        stems = {path.stem for path in OPERATIONS.glob("*.h")} - NOT_MEASURED
        self.assertGreater(len(stems), 8)
        self.assertLessEqual(stems, {one["name"].split("/")[0] for one in self.measured["measurements"]})

    def test_the_schema_holds(self):
        self.assertIn("processor", self.measured["machine"])
        for one in self.measured["measurements"]:
            self.assertEqual(list(one), ["name", "device", "parameters", "seconds", "operations", "bytes", "ceiling", "share"])
            seconds = one["seconds"]
            self.assertTrue(0 < seconds["min"] <= seconds["median"] <= seconds["max"])
            self.assertGreaterEqual(seconds["repeats"], 7)
            self.assertTrue(0 < one["share"] <= 1.05, one)
            self.assertGreater(one["operations"], 0)

    def test_a_comparison_finds_what_became_slower(self):
        before = json.loads(self.file.read_text())
        for one in before["measurements"]:
            one["share"] *= 100
        doctored = pathlib.Path(self.folder.name) / "before.json"
        doctored.write_text(json.dumps(before))
        slower = olrank("ops", *SMALL, "--only", "pair_width", "--compare", doctored)
        self.assertEqual(slower.returncode, 1, slower.stderr)
        self.assertIn("SLOWER", slower.stdout)
        allowed = olrank("ops", *SMALL, "--only", "pair_width", "--compare", doctored, "--factor", 1e6)
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        self.assertNotIn("another machine", allowed.stderr)
        before["machine"]["processor"] = "an abacus"
        doctored.write_text(json.dumps(before))
        elsewhere = olrank("ops", *SMALL, "--only", "pair_width", "--compare", doctored, "--factor", 1e6)
        self.assertIn("another machine", elsewhere.stderr)

    def test_what_cannot_be_measured_is_refused(self):
        for arguments, word in ((("ops", "--only", "nothing"), "nothing"), (("ops", "--device", "cuda"), "cuda"),
                                (("scale", "--over", "q"), "--over"), (("scale", "--values", "5"), "--values"),
                                (("round", "--structure", "fool"), "full"), (("ops", "--sizes", "3"), "--sizes")):
            refused = olrank(*arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(word, refused.stderr)
            self.assertEqual(len(refused.stderr.strip().splitlines()), 1)


class BenchRound(unittest.TestCase):
    def test_stages_add_up_to_the_round(self):
        for structure in ("full", "diagonal", "ensemble-2"):
            ran = olrank("round", "--structure", structure, "--pairs", 100, "--docs", 30, "--width", 8, "--features", 10,
                         "--rounds", 5, "--json")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            by_name = {one["name"]: one["seconds"] for one in json.loads(ran.stdout)["measurements"]}
            total = by_name.pop(f"round/{structure}/total")
            self.assertIn(f"round/{structure}/train", by_name)
            self.assertLessEqual(sum(stage["min"] for stage in by_name.values()), total["max"])
            self.assertEqual(total["repeats"], 5)

    def test_growth_has_an_exponent(self):
        ran = olrank("scale", "--over", "V", "--values", "20,40", "--pairs", 50, "--width", 8, "--features", 10, "--rounds", 3)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("total grows like V^", ran.stderr)
        self.assertEqual(sum("total" in line for line in ran.stdout.splitlines()), 2)

    def test_data_is_measured(self):
        ran = olrank("data", "--source", "synth:small", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual([one["name"] for one in json.loads(ran.stdout)["measurements"]],
                         ["data/parse", "data/read_copy", "data/evaluate"])


if __name__ == "__main__":
    unittest.main()
