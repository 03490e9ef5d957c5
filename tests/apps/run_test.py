"""`olrank run` as a process: what its rankers learn, resume after kill -9 and signals, replays of traces."""

import json
import random
import signal
import subprocess
import time
import unittest

from command_line import InFolder, curve, succeed, summary, trial_of

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


if __name__ == "__main__":
    unittest.main()
