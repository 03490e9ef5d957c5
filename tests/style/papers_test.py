#!/usr/bin/env python3
"""evidence/papers.py and evidence/choosing.py: condensed trials against figures computed by hand, and the rule for verdicts."""

import json
import math
import pathlib
import shutil
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "evidence"))
import choosing  # noqa: E402
import papers  # noqa: E402
import records  # noqa: E402

POINTS = [(0, 0.2, 0.0, 0.0), (100, 0.30, 40.0, 1000.0), (200, 0.35, 75.0, 2000.0), (400, 0.40, 130.0, 4000.0)]


def write_experiment(out, offline):
    """Two rankers on two seeds; `offline` adds to the last NDCG@10 of the first."""
    (out / "trials").mkdir(parents=True)
    config = {"protocol": {"rounds": 400}, "clicks": {"models": ["perfect"]}, "data": {"source": "synth:x", "folds": [1]},
              "ranker": [{"name": "a"}, {"name": "b"}]}
    (out / "manifest.json").write_text(json.dumps({"config": config, "seeds": [1, 2], "started": "2026-01-02T03:04:05Z"}))
    for ranker in "ab":
        for seed in (1, 2):
            folder = out / f"trials/{ranker}/perfect/fold1/seed{seed}"
            folder.mkdir(parents=True)
            gain = offline + 0.001 * seed if ranker == "a" else 0.0
            lines = [{"round": number, "offline": {"ndcg@10": ndcg + gain},
                      "online": {"ndcg@10": 0.3, "cndcg@10": cndcg, "regret": regret, "examined_regret": math.sqrt(regret)},
                      "random": {"offline": {"ndcg@10": 0.35}, "online": {"cndcg@10": cndcg / 2}},
                      "false_certain": {"share": 0.25, "of": 8},
                      "stated": [{"from": 0.5, "wrong": 0.5, "of": 10}, {"from": 0.9, "wrong": None, "of": 0}],
                      "certain_share": number / 1000, "block_size": {"1": 1.5, "5": 2.0, "10": 3.0}, "blocks": 7.0,
                      "cosine": None}
                     for number, ndcg, cndcg, regret in POINTS]
            (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            (folder / "summary.json").write_text(json.dumps({
                "ranker": ranker, "clicks": "perfect", "fold": 1, "seed": seed, "rounds": 400,
                "seconds_by_stage": {"train": 0.8, "width": 0.4, "eval": 9.0}}))


class Papers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_condenses_trials(self):
        write_experiment(self.folder / "out", 0.05)
        trial = papers.trial_of(self.folder / "out/trials/a/perfect/fold1/seed2/summary.json")
        self.assertEqual((trial["offline"], trial["cndcg"], trial["cndcg_early"]), (0.452, 130.0, 40.0))
        self.assertEqual((trial["certain_first"], trial["certain"]), (0.1, 0.4))
        self.assertEqual((trial["ms"], trial["stages"]), (3.0, {"train": 2.0, "width": 1.0}))  # evaluation is not a round's
        self.assertAlmostEqual(trial["slope"], 1.0)  # regret is proportional to the rounds
        self.assertEqual((trial["slope_examined"], trial["blocks_first"]), (0.5, 7.0))
        self.assertNotIn("curve", trial)
        curve = papers.trial_of(self.folder / "out/trials/a/perfect/fold1/seed2/summary.json", "overtaking")["curve"]
        self.assertEqual((curve[0], curve[-1]["round"]), ({"round": 100, "offline": trial["offline_first"]}, 400))

    def test_counts_what_was_wrong(self):
        write_experiment(self.folder / "out", 0.0)
        trial = choosing.trial_of(self.folder / "out/trials/b/perfect/fold1/seed1/summary.json")
        self.assertEqual((trial["offline"], trial["online"], trial["random"]), (0.4, 130.0, [0.35, 65.0]))
        self.assertEqual(trial["below_random"], 1)  # at round 100, not at 200, where both have .35
        self.assertEqual(trial["wrong"], [6, 24])  # of three evaluations after round 0
        self.assertEqual(trial["stated"], [[0.5, 15, 30], [0.9, 0, 0]])
        self.assertEqual(trial["ms"], 3.0)

    def test_takes_an_experiment_of_several_folders(self):
        self.enterContext(mock.patch.multiple(records, FOLDER=self.folder, LOADED={}))
        folders = [self.folder / "out", self.folder / "more"]
        for folder in folders:
            write_experiment(folder, 0.05)
        for trials in (folders[1] / "trials").glob("*/perfect/fold1"):
            shutil.rmtree(trials / "seed2")
            (trials / "seed1").rename(trials / "seed3")
            summary = trials / "seed3" / "summary.json"
            summary.write_text(summary.read_text().replace('"seed": 1', '"seed": 3'))
        manifest = json.loads((folders[1] / "manifest.json").read_text())
        (folders[1] / "manifest.json").write_text(json.dumps(manifest | {"seeds": [3]}))
        papers.add("linear", "x", folders, None)
        found = json.loads((self.folder / "papers.json").read_text())["linear-x"]
        self.assertEqual(found["seeds"], [1, 2, 3])
        self.assertEqual([(trial["ranker"], trial["seed"]) for trial in found["trials"]], [(r, s) for r in "ab" for s in (1, 2, 3)])

    def test_keeps_what_the_theorems_speak_of(self):
        def point(number, certain, regret, false=None):
            found = {"round": number, "pairs": 2 * number, "certain_share": certain,
                     "online": {"regret": regret, "examined_regret": regret - 1}, "random": {"online": {"regret": 3.0 * number}},
                     "log_det": 1.23456, "alpha": 7.0}
            return found | ({} if false is None else {"false_certain": {"share": false[0] / false[1], "of": false[1]}})

        curve = [point(5000, 0.5, 9, (1, 10)), point(10000, 0.6, 11), point(15000, 1.0, 12, (2, 30)), point(20000, 1.0, 12, (3, 40)),
                 point(25000, 1.0, 12, (0, 50)), point(30000, 1.0, 13, (4, 60))]
        kept = papers.theory_curve(curve)
        self.assertEqual([one["round"] for one in kept], [5000, 10000, 15000, 20000, 30000])
        self.assertEqual([(one["wrong"], one["of"]) for one in kept], [(1, 10), (0, 0), (2, 30), (3, 40), (4, 110)])
        self.assertEqual(kept[1], {"round": 10000, "pairs": 20000, "regret": 11, "examined": 10, "random": 30000.0, "wrong": 0, "of": 0,
                                   "certain": 0.6, "log_det": 1.2346, "alpha": 7.0})

    def test_the_configurations_of_the_theorems_have_their_constants(self):
        def sigmoid(x):
            return 1 / (1 + math.exp(-x))

        c_mu, k_mu = sigmoid(2) * (1 - sigmoid(2)), 0.25  # differences of documents are at most 2, where ‖θ‖ is at most 1
        for name in ("theory", "theory-networks"):
            config = tomllib.loads((ROOT / f"configs/papers/{name}.toml").read_text())
            for grade, click in enumerate(config["user"][0]["click"]):
                self.assertAlmostEqual(click, sigmoid(0.6 * (grade - 1.5)), places=8)
            for ranker in config["ranker"]:
                if "c1" in ranker:
                    parts = {"theory-4th": 4, "theory-16th": 16, "theory-64th": 64}.get(ranker["name"], 1)
                    self.assertAlmostEqual(ranker["c1"], 2 * k_mu / c_mu / parts, places=5)
                    self.assertEqual((ranker["lambda"], ranker["c2"], ranker["delta"]), (1.0, 1.0, 0.1))

    def test_pairs_trials_and_judges_them(self):
        write_experiment(self.folder / "out", 0.05)
        trials = papers.trials_by({"trials": [papers.trial_of(file)
                                              for file in sorted((self.folder / "out").glob("trials/*/*/*/*/summary.json"))]})
        found = papers.differences(trials, "perfect", "offline", "a", "b")
        self.assertEqual([round(value, 5) for value in found], [0.051, 0.052])
        # With two values the half-width is t · s/√2 = 12.7062 · (0.001/√2)/√2.
        self.assertAlmostEqual(papers.half_width(found), 12.7062 * 0.0005)
        self.assertEqual(papers.judged(papers.BETTER, found, "offline"), ("+.0515 ± .0064", True))
        self.assertEqual(papers.judged(papers.BETTER, [-value for value in found], "offline")[1], False)
        self.assertEqual(papers.judged(papers.BETTER, [0.1, -0.1], "offline")[1], None)
        self.assertEqual(papers.judged(papers.SAME, [0.001, 0.0011], "offline")[1], True)
        self.assertEqual(papers.judged(papers.SAME, [0.1, 0.1001], "offline")[1], False)
        self.assertEqual(papers.judged(papers.SAME, [0.1, -0.1], "offline")[1], None)
        # To reach another ranker allows the same margin of 0.01 below it alone.
        for values, reaches in (([-0.005, -0.0051], True), ([0.1, 0.1001], True), ([-0.1, -0.1001], False), ([-0.02, 0.0], None)):
            self.assertIs(papers.judged(papers.REACHES, values, "offline")[1], reaches)

    def test_compares_users_and_sizes_of_blocks(self):
        def trial(size_1, size_10, certain):
            return {"sizes": {"1": size_1, "10": size_10}, "certain": certain, "certain_first": 0.1, "blocks_first": 20 - size_10}

        trials = {("navigational", "a"): {(1, 1): trial(1.4, 9.0, 0.5), (1, 2): trial(2.0, 9.0, 0.5)},
                  ("perfect", "a"): {(1, 1): trial(1.25, 3.0, 0.7)}}

        def values(figure, how):
            return papers.values_of(trials, "perfect", papers.Claim("paper", "place", "text", "study", figure, how, "a"))

        self.assertEqual(values("size_10", "navigational"), [6.0])
        self.assertAlmostEqual(values("certain", "navigational")[0], 0.2)
        self.assertEqual(values("blocks_first", "navigational"), [6.0])  # fewer blocks of navigational users
        self.assertEqual((values("size_1", "one"), values("size_10", "top")), ([0.25], [1.75]))
        # The middle of a list that reaches rank 80 is rank 40.
        lists = {("informational", "a"): {(1, 1): {"sizes": {"1": 1.5, "20": 4.0, "40": 9.0, "80": 2.0, "100": None}}}}
        for figure, difference in (("middle_top", 7.5), ("middle_bottom", 7.0)):
            claim = papers.Claim("paper", "place", "text", "study", figure, "profile", "a")
            self.assertEqual(papers.values_of(lists, "informational", claim), [difference])
        self.assertEqual(papers.judged("one", [0.25, 0.26], "size_1")[1], True)
        self.assertEqual(papers.judged("one", [0.75, 0.76], "size_1")[1], False)

    def test_limits_are_the_slopes_of_powers_of_logarithms(self):
        """The limit at round 500 is the slope of log⁴ T on log axes, by a difference quotient."""
        at = [4 * math.log(math.log(500 * factor)) for factor in (1.0001, 1)]
        self.assertAlmostEqual(papers.limit(4, 500), (at[0] - at[1]) / math.log(1.0001), places=4)

    def test_verdicts(self):
        for agreements, verdict in (([True, True], "**reproduced**"), ([False], "**contradicted**"), ([None], "no difference found"),
                                    ([], "not run yet"), ([True, None, False], "mixed: 1 reproduced, 1 contradicted, 1 open")):
            self.assertEqual(papers.verdict_of(agreements), verdict)
        self.assertEqual(papers.verdict_of([None], papers.SAME), "not decided")


if __name__ == "__main__":
    unittest.main()
