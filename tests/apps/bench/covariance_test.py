"""olrank bench covariance as a process: the paired intervals recomputed from curve.jsonl, calibration; commands/run.test has how a
study is repeated, continued and sharded."""

import csv
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from command_line import olrank, succeed, trial_of  # noqa: E402

SEEDS = [1, 2, 3]
STUDY = ("--data", "synth:small?queries=40", "--fold", 1, "--rounds", 60, "--protocol-eval-every", 10, "--seeds", "1-3",
         "--clicks", "perfect,informational", "--widths", "4,8", "--depths", "2", "--noise-variances", "0.1",
         "--structures", "full,diagonal,none,ensemble-2", "--alpha", "0.3")
RANKERS = [f"{structure}-m{width}-L2{noise}" for width in (4, 8)
           for structure, noise in (("full", ""), ("diagonal", ""), ("none", ""), ("ensemble-2", "-nu0.1"))]
USERS = ["perfect", "informational"]


def study(out, *arguments):
    return olrank("bench", "covariance", *STUDY, "--out", out, *arguments)


def curve(out, ranker, user, seed):
    return [json.loads(line) for line in (trial_of(out, ranker, user, seed) / "curve.jsonl").read_text().splitlines()]


def table(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def t_quantile(freedom):
    """The 97.5 % quantile of Student's t with one and two degrees of freedom, in closed form."""
    return {1: math.tan(0.475 * math.pi), 2: 0.95 * math.sqrt(2 / (1 - 0.95 ** 2))}[freedom]


def half_width(values):
    return t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def pooled(points, key):
    counted = [point[key] for point in points if key in point]
    of = sum(count["of"] for count in counted)
    return sum(round(count["share"] * count["of"]) for count in counted) / of if of else None


FIGURES = {
    "offline-ndcg": lambda points: points[-1]["offline"]["ndcg@10"],
    "online-ndcg": lambda points: points[-1]["online"]["ndcg@10"],
    "online-cndcg": lambda points: points[-1]["online"]["cndcg@10"],
    "regret": lambda points: points[-1]["online"]["regret"],
    "false-certain": lambda points: pooled(points, "false_certain"),
    "decisions-differ": lambda points: pooled(points, "decisions_differ"),
    "certain-share": lambda points: points[-1]["certain_share"],
    "certain-share-mean": lambda points: sum(point["certain_share"] for point in points[1:]) / (len(points) - 1),
}


class BenchCovariance(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.out = cls.folder / "study"
        cls.ran = study(cls.out)
        assert cls.ran.returncode == 0, cls.ran.stderr
        cls.found = json.loads((cls.out / "study.json").read_text())

    def result(self, user, ranker):
        of_user = next(one for one in self.found["users"] if one["clicks"] == user)
        return next(one for one in of_user["results"] if one["ranker"] == ranker)

    def test_runs_every_structure(self):
        self.assertEqual([cell["ranker"] for cell in self.found["rankers"]], RANKERS)
        self.assertEqual([cell["alpha"] for cell in self.found["rankers"]], [0.3, 0.3, None, None] * 2)
        self.assertEqual(self.found["trials"], {"finished": 48, "expected": 48})
        for user in USERS:
            for ranker in RANKERS:
                self.assertEqual(self.result(user, ranker)["trials"], 3)

    def test_paired_intervals_match_the_curves(self):
        compared = 0
        for user in USERS:
            for ranker in RANKERS:
                partner = "full-" + ranker.split("-m")[-1].join(["m", ""]).replace("-nu0.1", "")
                for slug, figure in FIGURES.items():
                    own = [figure(curve(self.out, ranker, user, seed)) for seed in SEEDS]
                    exact = [figure(curve(self.out, partner, user, seed)) for seed in SEEDS]
                    told = self.result(user, ranker)["figures"].get(slug)
                    known = [value for value in own if value is not None]
                    if not known:
                        self.assertIsNone(told)
                        continue
                    self.check_estimate(told, known)
                    differences = [a - b for a, b in zip(own, exact) if a is not None and b is not None]
                    if ranker == partner or not differences:
                        self.assertNotIn("minus_full", told)
                        continue
                    self.check_estimate(told["minus_full"], differences)
                    compared += 1
        self.assertGreater(compared, 60)

    def check_estimate(self, told, values):
        self.assertEqual(told["units"], len(values))
        self.assertAlmostEqual(told["mean"], sum(values) / len(values), delta=1e-9 * max(1, abs(told["mean"])))
        if len(values) < 2:
            self.assertIsNone(told["high"])
            return
        half = half_width(values)
        self.assertAlmostEqual(told["high"] - told["mean"], half, delta=1e-6 * max(1, half))

    def test_the_figures_of_queries_have_the_mean_of_the_curve(self):
        rows = table(trial_of(self.out, "full-m4-L2") / "queries.csv")
        last = curve(self.out, "full-m4-L2", "perfect", 1)[-1]["offline"]["ndcg@10"]
        self.assertAlmostEqual(sum(float(row["ndcg@10"]) for row in rows) / len(rows), last, delta=1e-12)

    def test_compares_widths_with_a_shadow(self):
        widths = self.result("perfect", "diagonal-m4-L2")["width_ratios"]
        self.assertEqual([at["round"] for at in widths], [10, 20, 30, 40, 50, 60])
        for at in widths:
            own = [curve(self.out, "diagonal-m4-L2", "perfect", seed) for seed in SEEDS]
            mean = sum(point["width_ratio"]["median"] for points in own for point in points if point["round"] == at["round"]) / 3
            self.assertAlmostEqual(at["median"], mean, delta=1e-9)
        self.assertEqual(self.result("perfect", "full-m4-L2")["width_ratios"], [])
        self.assertEqual(self.result("perfect", "ensemble-2-m4-L2-nu0.1")["width_ratios"], [])

    def test_table_and_csv_agree(self):
        row = next(row for row in table(self.out / "study.csv")
                   if (row["clicks"], row["ranker"], row["figure"]) == ("perfect", "diagonal-m8-L2", "offline-ndcg"))
        against = self.result("perfect", "diagonal-m8-L2")["figures"]["offline-ndcg"]["minus_full"]
        self.assertEqual(float(row["difference"]), against["mean"])
        self.assertEqual(float(row["t_p_holm"]), against["t_p_holm"])
        self.assertIn(f"{against['mean']:+.4f} ± ", self.ran.stdout)
        self.assertIn("of fold 1, which hold for this fold only", self.ran.stdout)

    def test_the_page_shows_the_study(self):
        page = (self.out / "report.html").read_text()
        # It begins with the answer: sentences, four figures and a table; what follows is folded away.
        answer, _, rest = page.partition("<details>")
        for words in ("Comparison of covariances", "Offline NDCG@10, minus full", "Certain share, minus full",
                      "Time per round, over full&#39;s", "Cost against faithfulness of widths", "Paired differences from full, perfect user"):
            self.assertIn(words, answer)
        self.assertEqual(answer.count("<figure>"), 4 * len(USERS))
        self.assertGreater(rest.count("<figure>"), 10)
        against = self.result("perfect", "diagonal-m8-L2")["figures"]["offline-ndcg"]["minus_full"]
        shown = f"{against['mean']:+.4f}".replace("-", "−")
        self.assertIn(f"{shown} <span class=\"half\">± {against['high'] - against['mean']:.4f}", answer)
        headline = re.search(r"<strong>(.*?)</strong>", answer)[1]
        significant = any(self.result("perfect", name)["figures"][slug].get("minus_full", {}).get("t_p_holm", 1) < 0.05
                          for name in RANKERS for slug in ("offline-ndcg", "online-cndcg"))
        self.assertEqual("No structure differs significantly" in headline, not significant, headline)
        for printed in (self.ran.stdout, olrank("report", self.out).stdout):
            self.assertIn(headline, printed)
        figures = self.folder / "figures"
        self.assertEqual(olrank("report", self.out, "--figures", figures).returncode, 0)
        drawn = {path.name for path in figures.glob("study-*.svg")}
        self.assertLessEqual({"study-minus-full-offline-ndcg-perfect.svg", "study-cost-faithfulness-perfect.svg",
                              "study-minus-full-certain-share-informational-dark.svg",
                              "study-over-full-milliseconds-perfect.svg"}, drawn)
        rows = {row["ranker"]: row for row in table(figures / "study-cost-faithfulness-perfect.csv")}
        self.assertEqual(sorted(rows), sorted(f"{name}, m = {width}" for name in ("full", "diagonal") for width in (4, 8)))
        self.assertEqual(float(rows["full, m = 8"]["width / exact width"]), 1.0)
        diagonal, last = rows["diagonal, m = 8"], self.result("perfect", "diagonal-m8-L2")["width_ratios"][-1]
        for column, key in (("width / exact width", "median"), ("low", "p10"), ("high", "p90")):
            self.assertAlmostEqual(float(diagonal[column]), last[key], delta=1e-9)
        cost = self.result("perfect", "diagonal-m8-L2")["figures"]["milliseconds"]["mean"]
        self.assertAlmostEqual(float(diagonal["milliseconds per round"]), cost, delta=1e-9 * cost)

    def test_calibrates_matched_alpha_on_the_validation_set(self):
        out = self.folder / "matched"
        arguments = ("bench", "covariance", "--protocol", "paper", "--data", "synth:small?queries=40", "--fold", 1, "--rounds", 30, "--seeds", "1-2",
                     "--clicks", "perfect", "--widths", "4", "--depths", "2", "--structures", "full,diagonal,none",
                     "--study-calibration-rounds", 40, "--out", out)
        succeed(*arguments, "--set", "ranker.lambda=1", "--alpha", "matched")
        found = json.loads((out / "study.json").read_text())
        self.assertEqual(found["alpha"], "matched")
        full, diagonal = found["calibration"]["rankers"]
        self.assertEqual((full["ranker"], diagonal["ranker"]), ("full-m4-L2", "diagonal-m4-L2"))
        self.assertEqual([point["alpha"] for point in diagonal["points"]], [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3])
        self.assertEqual(found["rankers"][1]["alpha"], diagonal["alpha"])
        self.assertTrue(0.001 <= diagonal["alpha"] <= 3)
        wrong = of = 0
        for seed in (1, 2):
            points = curve(out / "calibration", "full-m4-L2", "perfect", seed)
            counted = [point["false_certain"] for point in points if "false_certain" in point]
            wrong += sum(count["share"] * count["of"] for count in counted)
            of += sum(count["of"] for count in counted)
        self.assertAlmostEqual(diagonal["target"], wrong / of, delta=1e-12)
        manifest = json.loads((out / "calibration" / "manifest.json").read_text())
        self.assertEqual(manifest["config"]["data"]["evaluate"], "vali")
        settings = json.loads((out / "manifest.json").read_text())["config"]["ranker"]
        self.assertEqual(settings[1]["alpha"], diagonal["alpha"])
        self.assertIn("false certainty − full", (out / "report.html").read_text())


if __name__ == "__main__":
    unittest.main()
