"""olrank bench ops, round and data as processes: measurements, shares, files and comparisons. At these small sizes
shares mean little."""

import json
import math
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from command_line import succeed  # noqa: E402

OPERATIONS = pathlib.Path("core/ops")
SMALL = ("--pairs", 300, "--docs", 40, "--width", 16, "--features", 46)
# A function that a header of core/ops declares: at the start of a line, not indented.
DECLARED = re.compile(r"^(?!using|typedef|inline)[A-Za-z_][\w:<>]*(?: [\w:<>]+)*[ *&]+(\w+)\(", re.M)
# One function for two number types or several losses, with a case for each.
LOSSES = ("lambdarank", "listmle", "listnet", "rankcosine", "ranknet", "ranksvm", "smooth-dcg")
OVERLOADED = {"gemm_double": "gemm", "gemm_float": "gemm", **{f"list_losses_{loss}": "list_losses" for loss in LOSSES}}


def functions_of(header):
    return set(DECLARED.findall(header.read_text()))


def measured(*arguments):
    return json.loads(succeed("bench", *arguments, "--json"))


class BenchOps(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.measured = measured("ops", *SMALL)

    def test_measures_some_of_every_header(self):
        declared = {header.stem: functions_of(header) for header in OPERATIONS.glob("*.h")}
        self.assertIn("append_solved", declared["inverse_factor"])
        names = [one["name"] for one in self.measured["measurements"]]
        self.assertEqual(len(names), len(set(names)))
        functions = [name.partition("/")[2] for name in names if not name.startswith("widths/")]
        self.assertEqual(len(functions), len(set(functions)))
        found = {OVERLOADED.get(name, name) for name in functions}
        self.assertLessEqual(found, set().union(*declared.values()))
        for stem, those in declared.items():
            self.assertTrue(found & those or not those, stem)

    def test_follows_the_schema(self):
        self.assertIn("processor", self.measured["machine"])
        for one in self.measured["measurements"]:
            self.assertEqual(list(one), ["name", "device", "parameters", "seconds", "operations", "bytes", "ceiling", "share"])
            seconds = one["seconds"]
            self.assertTrue(0 < seconds["min"] <= seconds["median"] <= seconds["max"])
            self.assertGreaterEqual(seconds["repeats"], 7)
            self.assertGreater(one["share"], 0)
            self.assertGreater(one["bytes"], 0)
            self.assertGreaterEqual(one["operations"], 0)
            if one["ceiling"]["name"] != "memory":
                self.assertGreater(one["operations"], 0)


class BenchRound(unittest.TestCase):
    def test_stages_add_up_to_the_round(self):
        for structure in ("full", "diagonal", "ensemble-2"):
            found = measured("round", "--structure", structure, "--pairs", 100, "--docs", 30, "--width", 8, "--features", 10,
                             "--rounds", 5)
            by_name = {one["name"]: one["seconds"] for one in found["measurements"]}
            total = by_name.pop(f"round/{structure}/total")
            elapsed = by_name.pop(f"round/{structure}/elapsed")
            self.assertGreaterEqual(elapsed["median"], total["min"])
            self.assertIn(f"round/{structure}/train", by_name)
            self.assertLessEqual(sum(stage["min"] for stage in by_name.values()), total["max"])
            self.assertEqual(total["repeats"], 5)

    def test_plays_from_one_training_on_the_history_to_the_next(self):
        """5 % of 1,000 pairs are 50, and a round brings 5: two such spans of ten rounds are at least 11."""
        found = measured("round", "--structure", "none", "--retrain", "growth", "--pairs", 1000, "--docs", 30, "--width", 8, "--features",
                         10)
        self.assertIn("--retrain growth --retrain-growth 0.05", found["command"])
        totals = {one["name"]: one["seconds"] for one in found["measurements"]}
        self.assertEqual(totals["round/none-growth/total"]["repeats"], 20)
        self.assertEqual((found["unit"]["name"], found["unit"]["side"]), ("gemm float", 1000))
        self.assertGreater(found["unit"]["seconds"], 0)

    def test_fits_over_the_actual_number_of_parameters(self):
        found = measured("round", "--over", "p", "--values", "90,170,400", "--depth", 3, "--docs", 20, "--pairs", 50, "--features", 10,
                         "--rounds", 3)
        totals = [one for one in found["measurements"] if one["name"].endswith("/total")]
        # p = 10 m + m² + m: 102 for m = 6, 152 for 8, 432 for 16.
        self.assertEqual([(one["parameters"]["m"], one["parameters"]["p"]) for one in totals], [(6, 102), (8, 152), (16, 432)])
        points = [(math.log(one["parameters"]["p"]), math.log(one["seconds"]["median"])) for one in totals]
        x, y = (sum(column) / 3 for column in zip(*points))
        slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
        told = {one["stage"]: one for one in found["exponents"]}["total"]
        self.assertEqual(told["axis"], "p")
        self.assertAlmostEqual(told["exponent"], slope, delta=1e-9)
        self.assertIsNone(told["last_half"])  # 432 is more than twice the others

    def test_fits_the_last_half(self):
        found = measured("round", "--over", "n", "--values", "20,40,80", "--structure", "none", "--docs", 12, "--width", 8, "--features", 10,
                         "--rounds", 3)
        times = [one["seconds"]["median"] for one in found["measurements"] if one["name"].endswith("/total")]
        told = {one["stage"]: one["last_half"] for one in found["exponents"]}["total"]
        self.assertAlmostEqual(told, math.log2(times[2] / times[1]), delta=1e-9)

    def test_inspects_at_the_speed_of_a_bare_loop(self):
        """A text without a '#', over which nothing may search for one."""
        found = measured("data", "--source", "synth:mslr-like?queries=40")
        inspect = {one["name"]: one for one in found["measurements"]}["data/inspect"]
        self.assertEqual(inspect["ceiling"]["name"], "from_chars")
        self.assertGreaterEqual(inspect["share"], 0.7)


if __name__ == "__main__":
    unittest.main()
