"""Commands and folders that are not theirs: nothing foreign is overwritten or removed, and one run writes at a time."""

import json
import re
import signal
import subprocess
import time
import unittest

from command_line import PROGRAM, InFolder, olrank, succeed

DATA = "synth:small?queries=30&seed=3"
SHORT = ["--ranker", "pdgd", "--rounds", 10, "--seeds", "1", "--clicks", "perfect"]
LONG = ["--ranker", "pdgd", "--rounds", 10000000, "--seeds", "1-2", "--clicks", "perfect"]


def command(*arguments):
    return [PROGRAM, *map(str, arguments)]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Folder(InFolder):
    def setUp(self):
        super().setUp()
        self.out = self.root / "o"

    def run_into(self, *arguments, code=0):
        done = olrank("run", "--quiet", "--data", DATA, "--out", self.out, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def refused(self, code, sentence, *arguments):
        """By exit code, with one message, and without a change."""
        before = contents(self.root)
        done = olrank(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("olrank: "), 1, done.stderr)
        self.assertEqual(contents(self.root), before)

    def start(self, *arguments):
        process = subprocess.Popen(command("run", "--quiet", "--data", DATA, "--out", self.out, *arguments),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def stop():
            process.kill()
            process.communicate()
        self.addCleanup(stop)
        return process

    def wait_for_trials(self, process, count):
        while len(list(self.out.glob("trials/*/*/*/*/curve.jsonl"))) < count:
            self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
            time.sleep(0.01)


class Foreign(Folder):
    def test_every_command_refuses_a_folder_of_somebody_else(self):
        sweep = self.root / "sweep.toml"
        sweep.write_text(f'[data]\nsource = "{DATA}"\n[[ranker]]\nkind = "pdgd"\n[sweep.pdgd]\nlearning_rate = [0.1, 1]\n')
        self.run_into(*SHORT)
        other = self.root / "mine"
        (other / "trials").mkdir(parents=True)
        for name in ("report.html", "config.toml", "summary.csv", "manifest.json", "trials/thesis.txt"):
            (other / name).write_text('{"name": "mine", "version": "1.0"}')
        for flags in ([], ["--force"], ["--resume"]):
            for words in (["run", "--data", DATA, *SHORT], ["tune", sweep],
                          ["bench", "covariance", "--data", DATA, "--widths", "4", "--rounds", 5, "--seeds", 1]):
                with self.subTest(words=words[:2], flags=flags):
                    self.refused(2, "not a folder that olrank made", *words, "--out", other, *flags)
        self.refused(2, "not a folder that olrank made", "report", self.out, "--out", other)
        self.refused(2, "not a folder that olrank made", "report", self.out, "--figures", other)
        self.refused(1, "not an experiment manifest", "report", other)
        self.refused(2, "is not a folder", "run", "--data", DATA, *SHORT, "--out", sweep, "--force")

    def test_a_killed_run_is_still_ours(self):
        """Killed at once, before or after it writes its manifest, and later."""
        for wait in (0.0, 0.02, 0.05, 0.1, 0.3, 1.0):
            process = self.start(*LONG, "--resume")
            time.sleep(wait)
            process.kill()
            process.communicate()
            self.assertEqual(process.returncode, -signal.SIGKILL)
        process = self.start(*LONG, "--resume")
        self.wait_for_trials(process, 1)
        process.kill()
        process.communicate()
        self.assertTrue((self.out / ".olrank-lock").exists())
        self.run_into(*SHORT, "--force")
        self.assertEqual([path for path in self.out.iterdir() if path.name.startswith(".")], [])

    def test_reports_have_folders_of_their_own(self):
        self.run_into(*SHORT)
        both, figures = self.root / "both", self.root / "figures"
        for _ in range(2):
            succeed("report", self.out, self.out, "--out", both, "--figures", figures)
        self.assertEqual(json.loads((both / "manifest.json").read_text())["kind"], "report")
        self.refused(2, "files of another command", "run", "--data", DATA, *SHORT, "--out", both, "--force")
        self.assertTrue(list(figures.glob("*.svg")))


class Locked(Folder):
    def test_a_second_run_is_refused_while_one_writes(self):
        process = self.start(*LONG)
        self.wait_for_trials(process, 1)
        for flags in (["--force"], ["--resume"], ["--shard", "0/2", "--resume"]):
            done = self.run_into(*LONG, *flags, code=1)
            self.assertRegex(done, rf"is in use by process {process.pid}\. Wait until it ends, or choose another --out\.")
        self.assertEqual(olrank("report", self.out).returncode, 0)
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=900)[1], process.returncode), ("", 143))
        self.run_into(*SHORT, "--force")

    def test_two_forced_runs_side_by_side_leave_one_whole_result(self):
        self.run_into(*SHORT)
        several = [*SHORT[:2], "--rounds", 300, "--seeds", "1-3", *SHORT[-2:], "--force"]
        processes = [self.start(*several) for _ in range(3)]
        done = [(process.communicate(timeout=900)[1], process.returncode) for process in processes]
        codes = [code for _, code in done]
        self.assertTrue(set(codes) <= {0, 1} and 0 in codes, done)
        for sentence, code in done:
            self.assertEqual(bool(re.search("is in use by", sentence)), code == 1, done)
        self.assertEqual((self.out / "summary.csv").read_text().count("\n"), 4)

    def test_shards_write_side_by_side_but_each_once(self):
        processes = [self.start(*LONG, "--shard", shard, "--resume") for shard in ("0/2", "1/2")]
        self.wait_for_trials(processes[0], 2)
        self.assertIn("is in use by process", self.run_into(*LONG, "--shard", "1/2", "--resume", code=1))
        for flags in (["--resume"], ["--force"], ["--shard", "0/3", "--resume"]):
            self.assertIn("is in use by a run in 2 shards", self.run_into(*LONG, *flags, code=1))
        processes[0].kill()
        processes[0].communicate()
        curve = self.out / "trials/pdgd/perfect/fold1/seed1/curve.jsonl"
        before = curve.stat().st_mtime_ns
        processes[0] = self.start(*LONG, "--shard", "0/2", "--resume")
        while curve.stat().st_mtime_ns == before:
            self.assertIsNone(processes[0].poll())
            time.sleep(0.01)
        for process in processes:
            process.send_signal(signal.SIGTERM)
            self.assertEqual((process.communicate(timeout=900)[1], process.returncode), ("", 143))
        self.assertEqual([path for path in self.out.iterdir() if path.name.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
