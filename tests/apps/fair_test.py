"""Fair exploration from the command line: exposure recomputed from a trace, unchanged rankers, refusals."""

import json
import unittest

from command_line import InFolder, curve, olrank, succeed, summary, trial_of

DATA = "synth:small?queries=40&docs=20&seed=3&group_share=0.4&group_gap=0.5"
GROUPS = ("--groups-feature", "11", "--groups-threshold", "0.5")


class Fairness(InFolder):
    def run_trial(self, out, *arguments):
        succeed("run", "--data", DATA, "--clicks", "informational", "--seeds", 1, "--rounds", 300, "--eval-every", 100, "--ranker", "pairrank",
                "--out", self.root / out, *arguments)
        return trial_of(self.root / out, "pairrank", "informational")

    def test_the_trace_adds_up_to_what_is_reported(self):
        trace = self.root / "trace.jsonl"
        trial = self.run_trial("o", *GROUPS, "--fair", "fairexp", "--trace", trace)
        manifest = json.loads((self.root / "o" / "manifest.json").read_text())
        examination, beta, epsilon = manifest["examination"], manifest["beta"], manifest["epsilon"]
        self.assertEqual(examination[0], 1.0)
        self.assertEqual(len(examination), 10)
        self.assertEqual(epsilon, 1.0)
        unfairness, fair, exposure = 0.0, 0, {"A": 0.0, "B": 0.0}
        for line in trace.read_text().splitlines()[1:]:
            one = json.loads(line)
            self.assertEqual(len(one["groups"]), one["docs"])
            for rank, doc in enumerate(one["shown"]):
                exposure[one["groups"][doc]] += examination[rank]
            unfairness = exposure["A"] - beta * exposure["B"]
            self.assertAlmostEqual(one["unfairness"], unfairness, places=9)
            fair += abs(one["unfairness"]) <= epsilon
        found = summary(trial)["fairness"]
        self.assertAlmostEqual(found["unfairness"], unfairness, places=9)
        for group in "AB":
            self.assertAlmostEqual(found["exposure"][group], exposure[group], places=6)
        self.assertEqual(found["fair_share"], fair / 300)
        self.assertGreaterEqual(fair, 300 - found["unrealisable"])
        rows = (self.root / "o" / "summary.csv").read_text().splitlines()
        self.assertEqual(rows[0].split(",")[-2:], ["unfairness", "fair_share"])
        self.assertAlmostEqual(float(rows[1].split(",")[-2]), unfairness, places=9)
        self.assertIn("unfairness  fair rounds\n", olrank("run", "--resume", "--out", self.root / "o").stdout)

    def test_groups_change_nothing_where_nothing_is_fair(self):
        grouped, plain = (curve(self.run_trial(out, *groups)) for out, groups in (("with", GROUPS), ("without", ())))
        for point in grouped:
            del point["fairness"]
        self.assertEqual(grouped, plain)

    def test_groups_of_a_folder_are_shown(self):
        done = succeed("data", "inspect", DATA, "--groups", "feature=11,threshold=0.5", "--json")
        shown = json.loads(done)["groups"][0]
        self.assertAlmostEqual(shown["A"]["share"], 0.4, delta=0.06)
        self.assertAlmostEqual(shown["A"]["mean_grade"] - shown["B"]["mean_grade"], 0.5, delta=0.25)
        self.assertAlmostEqual(shown["beta"], shown["A"]["mean_grade"] / shown["B"]["mean_grade"])


if __name__ == "__main__":
    unittest.main()
