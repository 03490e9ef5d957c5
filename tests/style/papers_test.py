#!/usr/bin/env python3
"""bench/papers.py and bench/choosing.py: condensed trials against figures computed by hand, and the rule for verdicts."""

import json
import math
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))
import choosing  # noqa: E402
import papers  # noqa: E402

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
                      "online": {"ndcg@10": 0.3, "cndcg@10": cndcg, "regret": regret},
                      "random": {"offline": {"ndcg@10": 0.35}, "online": {"cndcg@10": cndcg / 2}},
                      "false_certain": {"share": 0.25, "of": 8},
                      "stated": [{"from": 0.5, "wrong": 0.5, "of": 10}, {"from": 0.9, "wrong": None, "of": 0}],
                      "certain_share": number / 1000, "block_size": {"1": 1.5, "5": 2.0, "10": 3.0}, "cosine": None}
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

    def test_counts_what_was_wrong(self):
        write_experiment(self.folder / "out", 0.0)
        trial = choosing.trial_of(self.folder / "out/trials/b/perfect/fold1/seed1/summary.json")
        self.assertEqual((trial["offline"], trial["online"], trial["random"]), (0.4, 130.0, [0.35, 65.0]))
        self.assertEqual(trial["below_random"], 1)  # at round 100, not at 200, where both have .35
        self.assertEqual(trial["wrong"], [6, 24])  # of three evaluations after round 0
        self.assertEqual(trial["stated"], [[0.5, 15, 30], [0.9, 0, 0]])
        self.assertEqual(trial["ms"], 3.0)

    def test_slope_is_that_of_a_power(self):
        curve = [{"round": at, "online": {"regret": 7.0 * math.sqrt(at)}} for at in range(100, 1001, 100)]
        self.assertAlmostEqual(papers.slope_of(curve, "regret"), 0.5)

    def test_pairs_trials_and_judges_them(self):
        write_experiment(self.folder / "out", 0.05)
        trials = papers.trials_by({"trials": [papers.trial_of(file)
                                              for file in sorted((self.folder / "out").glob("trials/*/*/*/*/summary.json"))]})
        found = papers.differences(trials, "perfect", "offline", "a", "b")
        self.assertEqual([round(value, 5) for value in found], [0.051, 0.052])
        # Of two values the half-width is t · s/√2 = 12.706 · (0.001/√2)/√2.
        self.assertAlmostEqual(papers.half_width(found), 12.706 * 0.0005)
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
            return {"sizes": {"1": size_1, "10": size_10}, "certain": certain, "certain_first": 0.1}

        trials = {("navigational", "a"): {(1, 1): trial(1.4, 9.0, 0.5), (1, 2): trial(2.0, 9.0, 0.5)},
                  ("perfect", "a"): {(1, 1): trial(1.25, 3.0, 0.7)}}

        def values(figure, how):
            return papers.values_of(trials, "perfect", papers.Claim("paper", "place", "text", "study", figure, how, "a"))

        self.assertEqual(values("size_10", "navigational"), [6.0])
        self.assertAlmostEqual(values("certain", "navigational")[0], 0.2)
        self.assertEqual((values("size_1", "one"), values("size_10", "top")), ([0.25], [1.75]))
        self.assertEqual(papers.judged("one", [0.25, 0.26], "size_1")[1], True)
        self.assertEqual(papers.judged("one", [0.75, 0.76], "size_1")[1], False)

    def test_limits_are_the_slopes_of_powers_of_logarithms(self):
        """At round 500 the slope of log⁴ T on log axes, by a difference quotient."""
        at = [4 * math.log(math.log(500 * factor)) for factor in (1.0001, 1)]
        self.assertAlmostEqual(papers.limit(4, 500), (at[0] - at[1]) / math.log(1.0001), places=4)

    def test_verdicts(self):
        for agreements, verdict in (([True, True], "**reproduced**"), ([False], "**contradicted**"), ([None], "no difference found"),
                                    ([], "not run yet"), ([True, None, False], "mixed: 1 reproduced, 1 contradicted, 1 open")):
            self.assertEqual(papers.verdict_of(agreements), verdict)
        self.assertEqual(papers.verdict_of([None], papers.SAME), "not decided")


if __name__ == "__main__":
    unittest.main()
