"""`olrank run` as a process: what its rankers learn, resume after kill -9 and signals, replays of traces, the exposure of groups; and
scores of saved models, whose lists commands/data.test has from every form of the data."""

import json
import random
import signal
import subprocess
import time
import unittest

from command_line import InFolder, curve, olrank, succeed, summary, trial_of
from saved_models import write_safetensors

DATA = "synth:small?queries=60&seed=3"


class Folder(InFolder):
    def done(self, out, *arguments):
        succeed("run", "--quiet", "--data", DATA, "--out", out, *arguments)


class Experiment(Folder):
    def test_rankers_on_labels_learn_and_have_a_cosine(self):
        """One run per kind. The linear offline model is its own reference, up to its random samples."""
        figures = {}
        for kind, extra in (("ranknet-offline", ["--network", "linear"]), ("lambdarank-labels", ["--width", 10]),
                            ("pairrank", [])):
            self.done(self.folder / kind, "--ranker", kind, "--rounds", 200, "--seeds", "1", "--clicks", "perfect",
                      "--protocol-cosine", "offline", *extra)
            figures[kind] = curve(trial_of(self.folder / kind, kind))
        offline = figures["ranknet-offline"]
        self.assertGreater(offline[0]["cosine"], 0.97)
        self.assertEqual(offline[0]["offline"], offline[-1]["offline"])
        self.assertIsNone(figures["pairrank"][0]["cosine"])
        for kind in ("pairrank", "lambdarank-labels"):
            self.assertTrue(0.3 < figures[kind][-1]["cosine"] <= 1.0, figures[kind][-1]["cosine"])
        self.assertGreater(figures["lambdarank-labels"][-1]["offline"]["ndcg@10"],
                           figures["lambdarank-labels"][0]["offline"]["ndcg@10"] + 0.1)


class Resume(Folder):
    def test_survives_kills_at_random_times(self):
        """Checkpoints every 7 rounds take most of the time, so many kills interrupt the writing of one."""
        for ranker, rounds, most, *more in (("pairrank", 3000, 20), ("pdgd", 800, 4, "--network", "linear"), ("clickgp", 300, 4),
                                            ("olranknet", 250, 4, "--width", 8, "--steps", 4, "--covariance", "full", "--form", "dual")):
            with self.subTest(ranker=ranker):
                self.check_kills(ranker, most, "--rounds", rounds, *more)

    def check_kills(self, ranker, most, *settings):
        settings = ["--ranker", ranker, "--seeds", "1", "--clicks", "perfect", "--protocol-eval-every", 10, "--run-checkpoint-every", 7, *settings]
        out, whole = self.folder / f"killed-{ranker}", self.folder / f"whole-{ranker}"
        began = time.monotonic()
        self.done(whole, *settings)
        longest = min(0.25, (time.monotonic() - began) / (most + 1))  # so that kills do not outlast the run
        coins, kills = random.Random(20261121), 0
        for _ in range(400):
            process = self.start("run", "--quiet", "--data", DATA, "--out", out, "--resume", *settings)
            try:
                process.wait(coins.uniform(longest / 10, longest) if kills < most else 100)
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
            _, complaint = process.communicate()
            if process.returncode == 0:
                break
            self.assertEqual(process.returncode, -signal.SIGKILL, complaint)
        self.assertEqual(process.returncode, 0)
        self.assertGreaterEqual(kills, most, "the run ended before it was killed often enough")
        self.assertEqual((out / "summary.csv").read_bytes(), (whole / "summary.csv").read_bytes())
        mine, theirs = (trial_of(folder, ranker) for folder in (out, whole))
        self.assertEqual(curve(mine), curve(theirs))
        self.assertEqual((mine / "model.safetensors").read_bytes(), (theirs / "model.safetensors").read_bytes())
        self.assertEqual([path for path in mine.rglob("*") if ".tmp-" in path.name], [])

    def test_signals_stop_between_rounds_with_a_checkpoint(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            out = self.folder / f"stopped{code}"
            trial = trial_of(out, "p2linrank")
            done = self.signalled(number, (trial / "checkpoint/state.safetensors").exists, "run", "--quiet", "--data", DATA, "--out", out, "--set",
                                  "ranker.kind=p2linrank", "--rounds", 20000, "--seeds", "1-2", "--clicks", "perfect", "--jobs", 2)
            self.assertEqual(done[0], code, done)
            self.assertFalse((trial / "summary.json").exists())


class Replay(Folder):
    def test_replaying_a_trace_learns_the_same_model(self):
        """These rankers draw no random numbers while learning, so the same clicks give the same parameters."""
        shown = ("qid", "shown", "clicks")
        for ranker, kept, *more in (("pairrank", None, "--pairs", "adjacent"), ("pdgd", None),
                                    ("lambdarank-labels", shown, "--network", "linear", "--learning-rate", 0.1)):
            settings = ["--ranker", ranker, "--rounds", 80, "--seeds", "1", *more]
            trace = self.folder / f"{ranker}.jsonl"
            self.done(self.folder / "first", *settings, "--clicks", "navigational", "--trace", trace, "--trace-detail", "--force")
            if ranker == "pairrank":
                line = json.loads(trace.read_text().splitlines()[1])
                self.assertLessEqual({"theta", "width_sq", "certain", "step", "scores"}, line.keys())
                self.assertEqual(len(line["theta"]), summary(trial_of(self.folder / "first", ranker, "navigational"))["parameters"])
                rows = [line["scores"], line["width_sq"], line["certain"], *line["width_sq"], *line["certain"]]
                self.assertEqual(set(map(len, rows)), {line["docs"]})
            if kept:
                lines = [json.loads(line) for line in trace.read_text().splitlines()[1:]]
                trace.write_text("".join(json.dumps({key: line[key] for key in kept}) + "\n" for line in lines))
            self.done(self.folder / "again", *settings, "--replay", trace, "--force")
            a = curve(trial_of(self.folder / "first", ranker, "navigational"))
            b = curve(trial_of(self.folder / "again", ranker, "recorded"))
            self.assertNotEqual(a[-1]["offline"], a[0]["offline"])
            self.assertIsNone(b[-1]["online"]["regret"])
            for mine, theirs in zip(a, b, strict=True):
                for key in ("round", "pairs", "offline"):
                    self.assertEqual(mine[key], theirs[key], ranker)
                for key in ("ndcg@10", "cndcg@10"):
                    self.assertEqual(mine["online"][key], theirs["online"][key], ranker)
        self.refused(2, "team-draft", "run", "--quiet", "--data", DATA, "--out", self.folder / "c", "--ranker", "dbgd", "--replay", trace)


class Fairness(InFolder):
    DATA = "synth:small?queries=40&docs=20&seed=3&group_share=0.4&group_gap=0.5"
    GROUPS = ("--groups-feature", "11", "--groups-threshold", "0.5")

    def run_trial(self, out, *arguments):
        succeed("run", "--data", self.DATA, "--clicks", "informational", "--seeds", 1, "--rounds", 300, "--eval-every", 100, "--ranker", "pairrank",
                "--out", self.root / out, *arguments)
        return trial_of(self.root / out, "pairrank", "informational")

    def test_the_trace_adds_up_to_what_is_reported(self):
        trace = self.root / "trace.jsonl"
        trial = self.run_trial("o", *self.GROUPS, "--fair", "fairexp", "--trace", trace)
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
        grouped, plain = (curve(self.run_trial(out, *groups)) for out, groups in (("with", self.GROUPS), ("without", ())))
        for point in grouped:
            del point["fairness"]
        self.assertEqual(grouped, plain)

    def test_groups_of_a_folder_are_shown(self):
        done = succeed("data", "inspect", self.DATA, "--groups", "feature=11,threshold=0.5", "--json")
        shown = json.loads(done)["groups"][0]
        self.assertAlmostEqual(shown["A"]["share"], 0.4, delta=0.06)
        self.assertAlmostEqual(shown["A"]["mean_grade"] - shown["B"]["mean_grade"], 0.5, delta=0.25)
        self.assertAlmostEqual(shown["beta"], shown["A"]["mean_grade"] / shown["B"]["mean_grade"])


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

    def test_eval_matches_the_last_point_of_the_curve(self):
        source = "synth:small?queries=40&test_queries=20"
        kinds = ("pairrank", "olranknet", "p2neurrank", "ranknet", "lambdarank-labels")
        succeed("run", "--quiet", "--data", source, "--rounds", 60, "--protocol-eval-every", 30, "--seeds", 5, "--clicks", "navigational",
                "--ranker", ",".join(kinds), "--width", 8, "--out", self.folder)
        for kind in kinds:
            trial = trial_of(self.folder, kind, "navigational", 5)
            found = json.loads(succeed("eval", "--data", source, "--model", trial, "--at", "10", "--json"))
            self.assertAlmostEqual(found["metrics"]["ndcg@10"], curve(trial)[-1]["offline"]["ndcg@10"], delta=1e-6, msg=kind)


if __name__ == "__main__":
    unittest.main()
