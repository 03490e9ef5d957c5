"""`olrank run --resume`: what it extends, to the same bits, and which way out it names where it cannot."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, InFolder, curve, olrank, succeed

DATA = "synth:small?queries=60&seed=3"
SHORT = ["--ranker", "pdgd", "--rounds", 50, "--seeds", "1", "--clicks", "perfect"]


class Folder(InFolder):
    def setUp(self):
        super().setUp()
        self.out = self.root / "o"

    def run_into(self, out, *arguments, code=0, data=("--data", DATA), **options):
        done = olrank("run", "--quiet", *data, "--out", out, *arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def trial(self, ranker="pdgd", user="perfect", seed=1, out=None):
        return (out or self.out) / "trials" / ranker / user / "fold1" / f"seed{seed}"

    def summary(self, trial):
        return json.loads((trial / "summary.json").read_text())

    def manifest(self):
        return json.loads((self.out / "manifest.json").read_text())


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

    def test_the_folder_alone_is_enough(self):
        self.run_into(self.out, *SHORT, "--learning-rate", 0.2)
        self.run_into(self.out, "--resume", "--rounds", 80, data=())
        self.assertEqual(self.summary(self.trial())["rounds"], 80)
        config = (self.out / "config.toml").read_text()
        self.assertIn("rounds = 80", config)
        self.assertIn("learning_rate = 0.2", config)
        manifest = self.manifest()
        self.assertEqual([run["rounds"] for run in manifest["runs"]], [50, 80])
        self.assertIn("--learning-rate 0.2", manifest["runs"][0]["command"])
        missing = self.run_into(self.root / "nothing", "--resume", data=(), code=2)
        self.assertIn("has no config.toml to continue", missing)

    def test_refuses_what_would_be_shorter_or_of_two_lengths(self):
        self.run_into(self.out, *SHORT[:-3], "1-2", *SHORT[-2:])
        before = (self.out / "config.toml").read_bytes()
        self.assertIn("has 50 rounds, more than the 40 of this run: an experiment can be extended, not shortened",
                      self.run_into(self.out, *SHORT[:3], 40, *SHORT[4:], "--resume", code=2))
        self.assertIn("but not all of its seeds, so trials of both lengths would stand side by side. Extend all trials "
                      f"first: olrank run --resume --out {self.out} --rounds 80.",
                      self.run_into(self.out, *SHORT[:3], 80, *SHORT[4:], "--resume", code=2))
        self.assertIn("but not ranker 'pdgd'", self.run_into(
            self.out, "--ranker", "pairrank", "--rounds", 80, "--seeds", "1-2", "--clicks", "perfect", "--resume", code=2))
        self.assertEqual((self.out / "config.toml").read_bytes(), before)


class Trials(Folder):
    def test_adds_seeds_users_and_rankers(self):
        self.run_into(self.out, *SHORT)
        first = (self.trial() / "summary.json").stat().st_mtime_ns
        self.run_into(self.out, *SHORT[:5], "2-3", *SHORT[6:], "--resume")
        self.run_into(self.out, "--resume", "--clicks", "informational", "--seeds", "1", data=())
        self.run_into(self.out, "--resume", "--ranker", "pairrank,dbgd", "--alpha", 0.2, "--seeds", "1", "--clicks", "perfect",
                      data=())
        self.assertEqual((self.trial() / "summary.json").stat().st_mtime_ns, first)
        manifest = self.manifest()
        self.assertEqual(len(manifest["trial_folders"]), 6)
        self.assertEqual(manifest["trials"], 6)
        self.assertEqual(len(manifest["runs"]), 4)
        self.assertEqual((self.out / "summary.csv").read_text().count("\n"), 7)
        config = manifest["config"]
        self.assertEqual([ranker["name"] for ranker in config["ranker"]], ["pdgd", "pairrank", "dbgd"])
        self.assertEqual(config["ranker"][1]["alpha"], 0.2)
        self.assertEqual(config["protocol"]["seeds"], [1, 2, 3])
        self.assertEqual(config["clicks"]["models"], ["perfect", "informational"])
        # What is missing in the matrix.
        self.run_into(self.out, "--resume", data=())
        self.assertEqual(len(list(self.out.glob("trials/*/*/*/*/summary.json"))), 3 * 2 * 3)
        whole = self.root / "whole"
        succeed("run", "--quiet", self.out / "config.toml", "--out", whole)
        self.assertEqual((whole / "summary.csv").read_bytes(), (self.out / "summary.csv").read_bytes())

    def test_everything_else_stays_as_it_was(self):
        self.run_into(self.out, *SHORT)
        for arguments, difference in (
                (["--protocol-eval-every", 10], "protocol.eval_every is 10, and was 100"),
                (["--clicks-noise", 0.1], "clicks.noise is 0.1, and was 0.0"),
                (["--seeds", 2, "--learning-rate", 0.3], "ranker.pdgd.learning_rate is 0.3, and was 0.1")):
            said = self.run_into(self.out, *SHORT, *arguments, "--resume", code=2)
            self.assertIn(f"{self.out}: {difference}. --resume can add rounds, seeds, folds, users and rankers", said)


class Checkpoints(Folder):
    SETTINGS = ["--ranker", "pairrank", "--rounds", 120, "--seeds", "1", "--clicks", "perfect", "--protocol-eval-every", 25,
                "--run-checkpoint-every", 20]

    def states(self):
        return self.trial("pairrank") / "checkpoint"

    def damage(self, name):
        file = self.states() / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])

    def test_keeps_the_latest(self):
        self.run_into(self.out, *self.SETTINGS, "--run-keep-checkpoints", 3)
        self.assertEqual(sorted(path.name for path in self.states().iterdir()),
                         ["blocks-00.bin", "state-1.safetensors", "state-2.safetensors", "state.safetensors"])
        self.run_into(self.out, *self.SETTINGS, "--force")
        self.assertEqual(sorted(path.name for path in self.states().iterdir()), ["blocks-00.bin", "state.safetensors"])

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


class Surroundings(Folder):
    def test_a_hang_up_stops_like_a_termination(self):
        process = subprocess.Popen([PROGRAM, "run", "--data", DATA, "--out", str(self.out), *map(str, SHORT[:3]), "9000000",
                                    *map(str, SHORT[4:]), "--force"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (self.trial() / "curve.jsonl").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        said = process.communicate(timeout=900)[1]
        self.assertEqual(process.returncode, 129, said)
        self.assertTrue((self.trial() / "checkpoint/state.safetensors").exists())
        self.assertIn("run the same command with --resume in place of --force to continue", said)

    def test_settings_come_from_the_environment(self):
        def printed(*arguments, **variables):
            return olrank("run", "--print-config", *arguments, env={**os.environ, **variables})

        self.assertIn("\njobs = 3\n", printed(OLRANK_RUN_JOBS="3").stdout)
        self.assertIn("\njobs = 2\n", printed("--jobs", 2, OLRANK_RUN_JOBS="3").stdout)
        config = self.root / "c.toml"
        config.write_text('[run]\njobs = 5\n[protocol]\nseeds = [7]\n[[ranker]]\nkind = "pairrank"\nalpha = 0.3\n')
        both = printed(config, OLRANK_RUN_JOBS="3", OLRANK_RANKER_ALPHA="0.25").stdout
        self.assertIn("\njobs = 3\n", both)
        self.assertIn("\nalpha = 0.25\n", both)
        self.assertIn("\nseeds = [7]\n", both)
        for variables, said in (
                ({"OLRANK_RUN_JOBBS": "3"}, "OLRANK_RUN_JOBBS is no setting of [run]. Did you mean 'OLRANK_RUN_JOBS'?"),
                ({"OLRANK_RUN_JOBS": "many"}, "OLRANK_RUN_JOBS must be an integer, not 'many'."),
                ({"OLRANK_RUN_JOBS": "0"}, "OLRANK_RUN_JOBS must be at least 1 and at most 4096, not 0.")):
            done = printed(**variables)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
        self.assertEqual(printed(OLRANK_TORCH_DIR="/x", OLRANK_CUDA="OFF", OLRANK_SERVICE_HOST="a").returncode, 0)


if __name__ == "__main__":
    unittest.main()
