"""`olrank run --resume`: what it extends, to the same bits, which way out it names where it cannot, and that one run writes at a time."""

import json
import re
import shutil
import signal
import time
import unittest

from command_line import InFolder, curve, olrank, summary, trial_of

DATA = "synth:small?queries=60&seed=3"
LONG = ["--ranker", "pdgd", "--rounds", 10000000, "--seeds", "1-2", "--clicks", "perfect"]
SHORT = ["--ranker", "pdgd", "--rounds", 50, "--seeds", "1", "--clicks", "perfect"]


class Folder(InFolder):
    def setUp(self):
        super().setUp()
        self.out = self.root / "o"

    def run_into(self, out, *arguments, code=0):
        done = olrank("run", "--quiet", "--data", DATA, "--out", out, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def begin(self, *arguments):
        return self.start("run", "--data", DATA, "--out", self.out, *arguments)

    def wait_for_trials(self, process, count):
        self.wait_until(lambda: len(list(self.out.glob("trials/*/*/*/*/curve.jsonl"))) >= count, process)


class Rounds(Folder):
    def check_extension(self, ranker, short, long, *settings):
        """A trial of `long` rounds, at once and after one of `short`."""
        with self.subTest(ranker=ranker, short=short, long=long):
            out, whole = self.root / f"{ranker}-extended", self.root / f"{ranker}-whole"
            settings = ["--ranker", ranker, "--seeds", "1", "--clicks", "navigational", *settings]
            self.run_into(whole, *settings, "--rounds", long)
            self.run_into(out, *settings, "--rounds", short)
            self.run_into(out, *settings, "--rounds", long, "--resume")
            mine, theirs = (trial_of(folder, ranker, "navigational") for folder in (out, whole))
            self.assertEqual(curve(mine), curve(theirs))
            a, b = summary(mine), summary(theirs)
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
    SETTINGS = ["--ranker", "pairrank", "--rounds", 120, "--clicks", "perfect", "--protocol-eval-every", 25, "--run-checkpoint-every", 20]
    # A covariance whose rows are in block files next to the checkpoint.
    GROWING = ["--ranker", "olranknet", "--covariance", "full", "--form", "dual", "--width", 8, "--steps", 4, "--rounds", 250,
               "--clicks", "perfect", "--protocol-eval-every", 50, "--run-checkpoint-every", 10]

    def broken(self, *settings):
        """A trial that has not ended, and the figures that it had."""
        self.run_into(self.out, *settings)
        trial = trial_of(self.out, settings[1])
        figures = summary(trial)["result_fingerprint"], curve(trial)
        (trial / "summary.json").unlink()
        return trial, figures

    def resume(self, trial, figures, *settings):
        said = self.run_into(self.out, *settings, "--resume")
        self.assertEqual((summary(trial)["result_fingerprint"], curve(trial)), figures)
        return said

    def damage(self, file, place=-20):
        content = bytearray(file.read_bytes())
        content[place] ^= 1
        file.write_bytes(content)

    def test_a_damaged_checkpoint_is_passed_over(self):
        settings = [*self.SETTINGS, "--seeds", 1, "--run-keep-checkpoints", 3]
        trial, figures = self.broken(*settings)
        for name in ("state.safetensors", "state-1.safetensors"):
            self.damage(trial / "checkpoint" / name)
        said = self.resume(trial, figures, *settings)
        self.assertEqual(said.count("its checksum does not match. To continue, olrank uses the checkpoint before it."), 2, said)

    def test_damaged_new_rows_leave_the_checkpoint_before(self):
        settings = [*self.GROWING, "--seeds", 1, "--run-keep-checkpoints", 2]
        trial, figures = self.broken(*settings)

        def block_bytes(name):
            """The block files of a checkpoint, with the bytes that belong to it."""
            state = (trial / "checkpoint" / name).read_bytes()
            header = json.loads(state[8:8 + int.from_bytes(state[:8], "little")])
            return {file["name"]: file["bytes"] for file in json.loads(header["__metadata__"]["blocks"])["files"]}

        latest, earlier = block_bytes("state.safetensors"), block_bytes("state-1.safetensors")
        file = trial / "checkpoint" / next(name for name, size in latest.items() if size > earlier[name])
        self.damage(file, -1)
        self.assertIn(f"{file}: This part of the checkpoint {trial / 'checkpoint' / 'state.safetensors'} is damaged: its "
                      "checksum does not match. To continue, olrank uses the checkpoint before it.", self.resume(trial, figures, *settings))

    def test_without_another_the_error_names_the_way_out(self):
        settings = [*self.SETTINGS, "--seeds", "1-2"]
        trial, figures = self.broken(*settings)
        self.damage(trial / "checkpoint/state.safetensors")
        said = self.run_into(self.out, *settings, "--resume", code=1)
        self.assertIn(f"To continue, remove {trial} and use --resume: that trial starts again, all others are kept.", said)
        shutil.rmtree(trial)
        self.resume(trial, figures, *settings)


class Locked(Folder):
    def test_a_hang_up_stops_like_a_termination(self):
        code, said = self.signalled(signal.SIGHUP, (trial_of(self.out) / "curve.jsonl").exists, "run", "--data", DATA, "--out", self.out, *LONG,
                                    "--force")
        self.assertEqual(code, 129, said)
        self.assertTrue((trial_of(self.out) / "checkpoint/state.safetensors").exists())
        self.assertIn("run the same command with --resume in place of --force to continue", said)

    def test_a_killed_run_is_still_ours(self):
        """Killed at once, before or after it writes its manifest, and later."""
        for wait in (0.0, 0.02, 0.05, 0.1, 0.3, 1.0):
            process = self.begin("--quiet", *LONG, "--resume")
            time.sleep(wait)
            process.kill()
            process.communicate()
            self.assertEqual(process.returncode, -signal.SIGKILL)
        self.signalled(signal.SIGKILL, (trial_of(self.out) / "curve.jsonl").exists, "run", "--data", DATA, "--out", self.out, "--quiet", *LONG,
                       "--resume")
        self.assertTrue((self.out / ".olrank-lock").exists())
        self.run_into(self.out, *SHORT, "--force")
        self.assertEqual([path for path in self.out.iterdir() if path.name.startswith(".")], [])

    def test_a_second_run_is_refused_while_one_writes(self):
        process = self.begin("--quiet", *LONG)
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
        processes = [self.begin("--quiet", *several) for _ in range(3)]
        done = [(process.communicate(timeout=900)[1], process.returncode) for process in processes]
        codes = [code for _, code in done]
        self.assertTrue(set(codes) <= {0, 1} and 0 in codes, done)
        for sentence, code in done:
            self.assertEqual(bool(re.search("is in use by", sentence)), code == 1, done)
        self.assertEqual((self.out / "summary.csv").read_text().count("\n"), 4)

    def test_shards_write_side_by_side_but_each_once(self):
        processes = [self.begin("--quiet", *LONG, "--shard", shard, "--resume") for shard in ("0/2", "1/2")]
        self.wait_for_trials(processes[0], 2)
        self.assertIn("is in use by process", self.run_into(self.out, *LONG, "--shard", "1/2", "--resume", code=1))
        for flags in (["--resume"], ["--force"], ["--shard", "0/3", "--resume"]):
            self.assertIn("is in use by a run in 2 shards", self.run_into(self.out, *LONG, *flags, code=1))
        processes[0].kill()
        processes[0].communicate()
        curve = self.out / "trials/pdgd/perfect/fold1/seed1/curve.jsonl"
        before = curve.stat().st_mtime_ns
        processes[0] = self.begin("--quiet", *LONG, "--shard", "0/2", "--resume")
        self.wait_until(lambda: curve.stat().st_mtime_ns != before, processes[0])
        for process in processes:
            process.send_signal(signal.SIGTERM)
            self.assertEqual((process.communicate(timeout=900)[1], process.returncode), ("", 143))
        self.assertEqual([path for path in self.out.iterdir() if path.name.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
