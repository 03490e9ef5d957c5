"""`olrank run --resume`: what it extends, to the same bits, which way out it names where it cannot, and that one run writes at a time."""

import json
import re
import shutil
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, InFolder, curve, olrank

DATA = "synth:small?queries=60&seed=3"
LONG = ["--ranker", "pdgd", "--rounds", 10000000, "--seeds", "1-2", "--clicks", "perfect"]
SHORT = ["--ranker", "pdgd", "--rounds", 50, "--seeds", "1", "--clicks", "perfect"]


class Folder(InFolder):
    def setUp(self):
        super().setUp()
        self.out = self.root / "o"

    def run_into(self, out, *arguments, code=0, data=("--data", DATA), **options):
        done = olrank("run", "--quiet", *data, "--out", out, *arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def start(self, *arguments):
        process = subprocess.Popen([PROGRAM, "run", "--data", DATA, "--out", str(self.out), *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def wait_for_trials(self, process, count):
        while len(list(self.out.glob("trials/*/*/*/*/curve.jsonl"))) < count:
            self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
            time.sleep(0.01)

    def trial(self, ranker="pdgd", user="perfect", seed=1, out=None):
        return (out or self.out) / "trials" / ranker / user / "fold1" / f"seed{seed}"

    def summary(self, trial):
        return json.loads((trial / "summary.json").read_text())


class Rounds(Folder):
    def check_extension(self, ranker, short, long, *settings):
        """A trial of `long` rounds, at once and after one of `short`."""
        with self.subTest(ranker=ranker, short=short, long=long):
            out, whole = self.root / f"{ranker}-extended", self.root / f"{ranker}-whole"
            settings = ["--ranker", ranker, "--seeds", "1", "--clicks", "navigational", *settings]
            self.run_into(whole, *settings, "--rounds", long)
            self.run_into(out, *settings, "--rounds", short)
            self.run_into(out, *settings, "--rounds", long, "--resume")
            mine, theirs = (self.trial(ranker, "navigational", out=folder) for folder in (out, whole))
            self.assertEqual(curve(mine), curve(theirs))
            a, b = self.summary(mine), self.summary(theirs)
            for key in ("result_fingerprint", "area", "rounds", "last", "notes"):
                self.assertEqual(a[key], b[key], key)
            for file in ("model.safetensors", "queries.csv"):
                self.assertEqual((mine / file).read_bytes(), (theirs / file).read_bytes(), file)
            self.assertEqual((out / "summary.csv").read_bytes(), (whole / "summary.csv").read_bytes())

    def test_extended_trials_have_the_bits_of_whole_ones(self):
        every = ["--protocol-eval-every", 25]
        self.check_extension("pairrank", 50, 80, *every)
        self.check_extension("olranknet", 50, 80, *every, "--width", 8, "--optimizer", "nesterov")
        self.check_extension("p2neurrank", 50, 80, *every, "--width", 8)
        self.check_extension("p2linrank", 50, 80, *every)
        self.check_extension("mgd", 50, 80, *every)
        self.check_extension("ranknet", 250, 300, *every)

    def test_a_trial_may_have_ended_between_two_evaluations(self):
        self.check_extension("pairrank", 50, 80, "--protocol-eval-every", 30)
        self.check_extension("olranknet", 47, 61, "--protocol-eval-every", 20, "--width", 8, "--covariance", "diagonal",
                             "--shadow", "full")


class Checkpoints(Folder):
    SETTINGS = ["--ranker", "pairrank", "--rounds", 120, "--seeds", "1", "--clicks", "perfect", "--protocol-eval-every", 25,
                "--run-checkpoint-every", 20]

    def states(self):
        return self.trial("pairrank") / "checkpoint"

    def damage(self, name):
        file = self.states() / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])

    def test_a_damaged_checkpoint_is_passed_over(self):
        self.run_into(self.out, *self.SETTINGS, "--run-keep-checkpoints", 3)
        trial = self.trial("pairrank")
        fingerprint = self.summary(trial)["result_fingerprint"]
        points = curve(trial)
        (trial / "summary.json").unlink()
        for name in ("state.safetensors", "state-1.safetensors"):
            self.damage(name)
        said = self.run_into(self.out, *self.SETTINGS, "--run-keep-checkpoints", 3, "--resume")
        self.assertEqual(said.count("its checksum does not match. To continue, olrank uses the checkpoint before it."), 2, said)
        self.assertEqual(self.summary(trial)["result_fingerprint"], fingerprint)
        self.assertEqual(curve(trial), points)

    # A covariance whose rows are in block files next to the checkpoint.
    GROWING = ["--ranker", "olranknet", "--covariance", "full", "--form", "dual", "--width", 8, "--steps", 4, "--rounds", 250,
               "--seeds", "1", "--clicks", "perfect", "--protocol-eval-every", 50, "--run-checkpoint-every", 10]

    def block_bytes(self, name):
        """The block files of a checkpoint, with the bytes that belong to it."""
        state = (self.trial("olranknet") / "checkpoint" / name).read_bytes()
        header = json.loads(state[8:8 + int.from_bytes(state[:8], "little")])
        return {file["name"]: file["bytes"] for file in json.loads(header["__metadata__"]["blocks"])["files"]}

    def test_damaged_new_rows_leave_the_checkpoint_before(self):
        self.run_into(self.out, *self.GROWING, "--run-keep-checkpoints", 2)
        trial = self.trial("olranknet")
        fingerprint = self.summary(trial)["result_fingerprint"]
        (trial / "summary.json").unlink()
        latest, earlier = self.block_bytes("state.safetensors"), self.block_bytes("state-1.safetensors")
        name = next(name for name, size in latest.items() if size > earlier[name])
        file = trial / "checkpoint" / name
        rows = file.read_bytes()
        file.write_bytes(rows[:-1] + bytes([rows[-1] ^ 1]))
        said = self.run_into(self.out, *self.GROWING, "--run-keep-checkpoints", 2, "--resume")
        self.assertIn(f"{file}: This part of the checkpoint {trial / 'checkpoint' / 'state.safetensors'} is damaged: its "
                      "checksum does not match. To continue, olrank uses the checkpoint before it.", said)
        self.assertEqual(self.summary(trial)["result_fingerprint"], fingerprint)

    def test_without_another_the_error_names_the_way_out(self):
        self.run_into(self.out, *self.SETTINGS[:5], "1-2", *self.SETTINGS[6:])
        trial = self.trial("pairrank")
        fingerprint = self.summary(trial)["result_fingerprint"]
        (trial / "summary.json").unlink()
        self.damage("state.safetensors")
        resume = [*self.SETTINGS[:5], "1-2", *self.SETTINGS[6:], "--resume"]
        said = self.run_into(self.out, *resume, code=1)
        self.assertIn(f"To continue, remove {trial} and use --resume: that trial starts again, all others are kept.", said)
        shutil.rmtree(trial)
        self.run_into(self.out, *resume)
        self.assertEqual(self.summary(trial)["result_fingerprint"], fingerprint)


class Locked(Folder):
    def test_a_hang_up_stops_like_a_termination(self):
        process = self.start(*LONG, "--force")
        self.wait_for_trials(process, 1)
        process.send_signal(signal.SIGHUP)
        said = process.communicate(timeout=900)[1]
        self.assertEqual(process.returncode, 129, said)
        self.assertTrue((self.trial() / "checkpoint/state.safetensors").exists())
        self.assertIn("run the same command with --resume in place of --force to continue", said)

    def test_a_killed_run_is_still_ours(self):
        """Killed at once, before or after it writes its manifest, and later."""
        for wait in (0.0, 0.02, 0.05, 0.1, 0.3, 1.0):
            process = self.start("--quiet", *LONG, "--resume")
            time.sleep(wait)
            process.kill()
            process.communicate()
            self.assertEqual(process.returncode, -signal.SIGKILL)
        process = self.start("--quiet", *LONG, "--resume")
        self.wait_for_trials(process, 1)
        process.kill()
        process.communicate()
        self.assertTrue((self.out / ".olrank-lock").exists())
        self.run_into(self.out, *SHORT, "--force")
        self.assertEqual([path for path in self.out.iterdir() if path.name.startswith(".")], [])

    def test_a_second_run_is_refused_while_one_writes(self):
        process = self.start("--quiet", *LONG)
        self.wait_for_trials(process, 1)
        for flags in (["--force"], ["--resume"], ["--shard", "0/2", "--resume"]):
            done = self.run_into(self.out, *LONG, *flags, code=1)
            self.assertRegex(done, rf"is in use by process {process.pid}\. Wait until it ends, or choose another --out\.")
        self.assertEqual(olrank("report", self.out).returncode, 0)
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=900)[1], process.returncode), ("", 143))
        self.run_into(self.out, *SHORT, "--force")

    def test_two_forced_runs_side_by_side_leave_one_whole_result(self):
        self.run_into(self.out, *SHORT)
        several = [*SHORT[:2], "--rounds", 300, "--seeds", "1-3", *SHORT[-2:], "--force"]
        processes = [self.start("--quiet", *several) for _ in range(3)]
        done = [(process.communicate(timeout=900)[1], process.returncode) for process in processes]
        codes = [code for _, code in done]
        self.assertTrue(set(codes) <= {0, 1} and 0 in codes, done)
        for sentence, code in done:
            self.assertEqual(bool(re.search("is in use by", sentence)), code == 1, done)
        self.assertEqual((self.out / "summary.csv").read_text().count("\n"), 4)

    def test_shards_write_side_by_side_but_each_once(self):
        processes = [self.start("--quiet", *LONG, "--shard", shard, "--resume") for shard in ("0/2", "1/2")]
        self.wait_for_trials(processes[0], 2)
        self.assertIn("is in use by process", self.run_into(self.out, *LONG, "--shard", "1/2", "--resume", code=1))
        for flags in (["--resume"], ["--force"], ["--shard", "0/3", "--resume"]):
            self.assertIn("is in use by a run in 2 shards", self.run_into(self.out, *LONG, *flags, code=1))
        processes[0].kill()
        processes[0].communicate()
        curve = self.out / "trials/pdgd/perfect/fold1/seed1/curve.jsonl"
        before = curve.stat().st_mtime_ns
        processes[0] = self.start("--quiet", *LONG, "--shard", "0/2", "--resume")
        while curve.stat().st_mtime_ns == before:
            self.assertIsNone(processes[0].poll())
            time.sleep(0.01)
        for process in processes:
            process.send_signal(signal.SIGTERM)
            self.assertEqual((process.communicate(timeout=900)[1], process.returncode), ("", 143))
        self.assertEqual([path for path in self.out.iterdir() if path.name.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
