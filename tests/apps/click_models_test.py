"""Users of every click model from a configuration: the same results whole and in shards."""

import json
import subprocess
import unittest

from command_line import PROGRAM, InFolder


CONFIGURATION = """
[data]
source = "synth:small?queries=60&test_queries=20"
cache = "none"
[protocol]
rounds = {rounds}
eval_every = 100
seeds = [1]
[clicks]
models = {models}
[[user]]
name = "patient"
kind = "dbn"
click = [0.05, 0.3, 0.5, 0.7, 0.95]
satisfaction = [0.1, 0.2, 0.3, 0.5, 0.8]
perseverance = 0.9
[[user]]
name = "browsing"
kind = "ubm"
click = [0.05, 0.3, 0.5, 0.7, 0.95]
browsing = [1.0, 0.6, 0.9, 0.4, 0.6, 0.9]
[[user]]
name = "gone"
kind = "cascade"
click = [0, 0, 0, 0, 0]
[[user]]
name = "fickle"
kind = "changing"
intents = ["navigational", "gone"]
change_every = {change}
[[ranker]]
name = "pdgd"
kind = "pdgd"
"""


class ClickModels(InFolder):
    def configuration(self, models, rounds, change):
        file = self.folder / "users.toml"
        file.write_text(CONFIGURATION.format(models=json.dumps(models), rounds=rounds, change=change))
        return file

    def run_it(self, out, file, *flags):
        done = subprocess.run([PROGRAM, "run", file, "--quiet", "--out", self.folder / out, *flags], capture_output=True,
                              text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / out / "summary.csv").read_bytes()

    def test_shards_give_the_same_results(self):
        file = self.configuration(["patient", "browsing", "fickle"], 8000, 1500)
        whole = self.run_it("whole", file)
        self.assertEqual(whole.count(b"\n"), 4)
        for shard in ("0/2", "1/2"):
            self.run_it("shards", file, "--shard", shard)
        self.run_it("shards", file, "--resume")
        self.assertEqual((self.folder / "shards" / "summary.csv").read_bytes(), whole)

    def test_a_changing_user_changes_after_the_round_it_says(self):
        file = self.configuration(["fickle"], 100, 25)
        self.run_it("traced", file, "--trace", self.folder / "trace.jsonl")
        rounds = [json.loads(line) for line in (self.folder / "trace.jsonl").read_text().splitlines()][1:]
        clicked = [{entry["round"] for entry in rounds if (entry["round"] - 1) // 25 == phase and any(entry["clicks"])}
                   for phase in range(4)]
        self.assertGreater(len(clicked[0]), 10)
        self.assertGreater(len(clicked[2]), 10)
        self.assertEqual((clicked[1], clicked[3]), (set(), set()))


if __name__ == "__main__":
    unittest.main()
