"""`olrank run` as a process: resume after kill -9 and signals, shards, threads, replays, traces, bad input."""

import csv
import json
import random
import resource
import shlex
import shutil
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, InFolder, curve, olrank, succeed

DATA = "synth:small?queries=60&seed=3"


def run(out, *arguments, **options):
    return olrank("run", "--quiet", "--data", DATA, "--out", out, *arguments, **options)


class Folder(InFolder):
    def done(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def trial(self, out, ranker="pairrank", user="perfect", seed=1):
        return self.folder / out / "trials" / ranker / user / "fold1" / f"seed{seed}"

    def refused(self, code, sentence, *arguments, **options):
        done = olrank(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(sum(line.startswith("olrank: ") for line in done.stderr.splitlines()), 1, done.stderr)


class Experiment(Folder):
    def test_writes_the_files_of_the_contract(self):
        done = self.done(self.folder / "a", "--ranker", "pairrank", "--rounds", 25, "--protocol-eval-every", 10, "--seeds",
                         "1-2", "--clicks", "perfect,informational")
        self.assertIn("pairrank", done.stdout)
        trial = self.trial("a")
        self.assertEqual([point["round"] for point in curve(trial)], [0, 10, 20, 25])
        point = curve(trial)[-1]
        self.assertEqual({"round", "pairs", "offline", "online", "certain_share", "blocks", "block_size", "cosine",
                          "width_ratio", "drift"} - set(point), set())
        self.assertEqual(set(point["online"]), {"ndcg@10", "cndcg@10", "regret", "examined_regret"})
        self.assertLessEqual({"1", "2", "5", "10"}, set(point["block_size"]))
        line = json.loads((trial / "curve.jsonl").read_text().splitlines()[-1])
        self.assertEqual({"score", "width", "rank", "click", "observe", "train", "eval"}, set(line["seconds"]))
        summary = json.loads((trial / "summary.json").read_text())
        self.assertEqual(summary["rounds"], 25)
        self.assertEqual(len(summary["result_fingerprint"]), 32)
        self.assertTrue((trial / "model.safetensors").stat().st_size > 0)
        manifest = json.loads((self.folder / "a" / "manifest.json").read_text())
        self.assertEqual(shlex.split(manifest["command"])[1:], done.args[1:])
        for key in ("version", "commit", "command", "config", "seeds", "device", "libtorch", "cuda", "data", "conventions"):
            self.assertIn(key, manifest)
        self.assertEqual(manifest["trials"], 4)
        self.assertEqual(manifest["data"]["folds"][0]["train"]["queries"], 60)
        rows = list(csv.DictReader((self.folder / "a" / "summary.csv").read_text().splitlines()))
        self.assertEqual(len(rows), 4)

    def test_rankers_on_labels_learn_and_have_a_cosine(self):
        """One run per kind. The linear offline model is its own reference, up to its random samples."""
        figures = {}
        for kind, extra in (("ranknet-offline", ["--network", "linear"]), ("lambdarank-labels", ["--width", 10]),
                            ("pairrank", [])):
            self.done(self.folder / kind, "--ranker", kind, "--rounds", 200, "--seeds", "1", "--clicks", "perfect",
                      "--protocol-cosine", "offline", *extra)
            figures[kind] = curve(self.trial(kind, kind))
        offline = figures["ranknet-offline"]
        self.assertGreater(offline[0]["cosine"], 0.97)
        self.assertEqual(offline[0]["offline"], offline[-1]["offline"])
        self.assertIsNone(figures["pairrank"][0]["cosine"])
        for kind in ("pairrank", "lambdarank-labels"):
            self.assertTrue(0.3 < figures[kind][-1]["cosine"] <= 1.0, figures[kind][-1]["cosine"])
        self.assertGreater(figures["lambdarank-labels"][-1]["offline"]["ndcg@10"],
                           figures["lambdarank-labels"][0]["offline"]["ndcg@10"] + 0.1)

    def test_rankers_on_labels_accept_recorded_feedback(self):
        feedback = self.folder / "feedback.jsonl"
        settings = ["--ranker", "lambdarank-labels", "--network", "linear", "--learning-rate", 0.1, "--rounds", 40, "--seeds", "1"]
        self.done(self.folder / "a", *settings, "--clicks", "perfect", "--trace", feedback)
        lines = feedback.read_text().splitlines()[1:]
        kept = [{key: json.loads(line)[key] for key in ("qid", "shown", "clicks")} for line in lines]
        feedback.write_text("".join(json.dumps(line) + "\n" for line in kept))
        self.done(self.folder / "b", *settings, "--replay", feedback)
        first = curve(self.trial("a", "lambdarank-labels"))
        second = curve(self.trial("b", "lambdarank-labels", "recorded"))
        self.assertEqual(first[-1]["offline"], second[-1]["offline"])
        self.assertNotEqual(first[-1]["offline"], first[0]["offline"])

    def test_jobs_threads_and_shards_change_nothing(self):
        settings = ["--set", "ranker.kind=pairrank", "--rounds", 120, "--seeds", "1-5", "--clicks", "perfect,informational"]
        self.done(self.folder / "one", "--threads", 1, *settings)
        expected = (self.folder / "one" / "summary.csv").read_bytes()
        for name, how in (("two", ["--threads", 2]), ("four", ["--threads", 4, "--jobs", 3])):
            self.done(self.folder / name, *how, *settings)
            self.assertEqual((self.folder / name / "summary.csv").read_bytes(), expected, name)
        merged = self.folder / "merged"
        found = 0
        for index in range(3):
            out = self.folder / f"shard{index}"
            self.done(out, "--shard", f"{index}/3", *settings)
            found += len(list(out.glob("trials/**/summary.json")))
            shutil.copytree(out, merged, dirs_exist_ok=True)
        self.assertEqual(found, 10)
        self.assertNotEqual((merged / "summary.csv").read_bytes(), expected)
        succeed("report", merged)
        self.assertEqual((merged / "summary.csv").read_bytes(), expected)


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
            process = subprocess.Popen(
                [PROGRAM, "run", "--quiet", "--data", DATA, "--out", str(out), "--resume", *map(str, settings)],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
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
        mine, theirs = (self.trial(folder, ranker) for folder in (out, whole))
        self.assertEqual(curve(mine), curve(theirs))
        self.assertEqual((mine / "model.safetensors").read_bytes(), (theirs / "model.safetensors").read_bytes())
        self.assertEqual([path for path in mine.rglob("*") if ".tmp-" in path.name], [])

    def test_signals_stop_between_rounds_with_a_checkpoint(self):
        settings = ["--set", "ranker.kind=p2linrank", "--rounds", 20000, "--seeds", "1-2", "--clicks", "perfect", "--jobs", 2]
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            out = self.folder / f"stopped{code}"
            process = subprocess.Popen([PROGRAM, "run", "--quiet", "--data", DATA, "--out", str(out), *map(str, settings)],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            checkpoint = out / "trials/p2linrank/perfect/fold1/seed1/checkpoint/state.safetensors"
            while not checkpoint.exists() and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(number)
            _, complaint = process.communicate(timeout=900)
            self.assertEqual(process.returncode, code, complaint)
            self.assertFalse((out / "trials/p2linrank/perfect/fold1/seed1/summary.json").exists())

    def test_refuses_checkpoints_of_other_runs(self):
        out = self.folder / "a"
        settings = ["--ranker", "pairrank", "--rounds", 50, "--seeds", "1", "--clicks", "perfect"]
        self.done(out, *settings)
        trial = self.trial("a")
        (trial / "summary.json").unlink()
        resume = ["run", "--quiet", "--out", out, *settings, "--resume", "--data"]
        configuration = (out / "config.toml").read_bytes()
        self.refused(2, 'was played on other data: data.source is "synth:small?queries=60&seed=4", and was "synth:small?'
                     'queries=60&seed=3". Resume with the data that it began with, or choose another --out.',
                     *resume, "synth:small?queries=60&seed=4")
        self.assertEqual((out / "config.toml").read_bytes(), configuration)
        state = trial / "checkpoint" / "state.safetensors"
        whole = state.read_bytes()
        state.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
        self.refused(1, "its checksum does not match", *resume, DATA)
        state.unlink()
        earlier = trial / "checkpoint" / "state.olrank"
        earlier.write_bytes(b"olrankst" + bytes([1, 0, 0, 0]) + bytes(28))
        self.refused(1, "state.olrank: This checkpoint has format version 1, but this olrank reads versions 2 and 3. To "
                     f"continue, use the olrank that wrote it, or remove {trial} and use --resume", *resume, DATA)
        earlier.unlink()
        state.write_bytes(whole)
        self.assertEqual(olrank(*resume, DATA).returncode, 0)

    def test_a_full_disk_keeps_finished_trials(self):
        out = self.folder / "a"
        settings = ["--set", "ranker.kind=pairrank", "--rounds", 400, "--clicks", "perfect", "--protocol-eval-every", 1]

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))

        self.done(out, *settings, "--seeds", "1")
        before = (self.trial("a") / "summary.json").read_bytes()
        shutil.copytree(out, self.folder / "b")
        done = run(self.folder / "b", *settings, "--seeds", "2", "--resume", preexec_fn=small_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("curve.jsonl", done.stderr)
        self.assertEqual(done.stderr.count("olrank: "), 1, done.stderr)
        self.assertEqual((self.folder / "b/trials/pairrank/perfect/fold1/seed1/summary.json").read_bytes(), before)
        self.done(self.folder / "b", *settings, "--seeds", "2", "--resume")


class Replay(Folder):
    def test_replaying_a_trace_learns_the_same_model(self):
        """These rankers draw no random numbers while learning, so the same clicks give the same parameters."""
        for ranker, pairs in (("pairrank", ["--pairs", "adjacent"]), ("pdgd", [])):
            settings = ["--ranker", ranker, "--rounds", 80, "--seeds", "1", *pairs]
            trace = self.folder / f"{ranker}.jsonl"
            self.done(self.folder / "first", *settings, "--clicks", "navigational", "--trace", trace, "--trace-detail", "--force")
            if ranker == "pairrank":
                line = json.loads(trace.read_text().splitlines()[1])
                self.assertLessEqual({"theta", "width_sq", "certain", "step", "scores"}, line.keys())
                summary = json.loads((self.trial("first", ranker, "navigational") / "summary.json").read_text())
                self.assertEqual(len(line["theta"]), summary["parameters"])
                rows = [line["scores"], line["width_sq"], line["certain"], *line["width_sq"], *line["certain"]]
                self.assertEqual(set(map(len, rows)), {line["docs"]})
            self.done(self.folder / "again", *settings, "--replay", trace, "--force")
            a = curve(self.trial("first", ranker, "navigational"))
            b = curve(self.trial("again", ranker, "recorded"))
            self.assertGreater(a[-1]["pairs"], 0)
            self.assertIsNone(b[-1]["online"]["regret"])
            for mine, theirs in zip(a, b, strict=True):
                for key in ("round", "pairs", "offline"):
                    self.assertEqual(mine[key], theirs[key], ranker)
                for key in ("ndcg@10", "cndcg@10"):
                    self.assertEqual(mine["online"][key], theirs["online"][key], ranker)
        self.refused(2, "team-draft", "run", "--data", DATA, "--out", self.folder / "c", "--ranker", "dbgd", "--replay", trace)


if __name__ == "__main__":
    unittest.main()
