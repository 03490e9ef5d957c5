"""The program as a process: exit codes, stdout and stderr, flags before and after the command."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]


def olrank(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, **options)


class Frame(unittest.TestCase):
    def test_help_and_version(self):
        for arguments in (["--help"], ["info", "--help"], ["run", "--help"]):
            done = olrank(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertIn("--json", olrank("--help").stdout)
        self.assertRegex(olrank("--version").stdout, r"^olrank \d+\.\d+\.\d+ \(\S+\)\n$")

    def test_misspelt_names_get_a_suggestion_and_exit_2(self):
        for arguments, nearest in (
            (["rum"], "'run'"),
            (["inof"], "'info'"),
            (["run", "--alpah", "1"], "'--alpha'"),
            (["run", "--alpah=1"], "'--alpha'"),
            (["info", "--jsn"], "'--json'"),
            (["run", "--protocol-eval-evry", "1"], "'--protocol-eval-every'"),
        ):
            done = olrank(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(nearest, done.stderr, arguments)
            self.assertEqual(done.stderr.count("\n"), 1, arguments)

    def test_wrong_usage_exits_2(self):
        for arguments in ([], ["info", "more"], ["run", "--alpha"], ["run", "--alpha", "x"], ["run", "a.toml", "b.toml"],
                          ["run", "/nonexistent.toml"], ["--quiet", "--verbose", "info"], ["--json", "info", "--settings"]):
            done = olrank(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr.startswith("olrank: "), arguments)
            self.assertEqual(done.stdout, "", arguments)

    def test_reports_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("this system has no /dev/full")
        # Short and long output, CLI11's and our own, in one piece and in many.
        for arguments in (["info"], ["info", "--settings"], ["tune", "--help"], ["--version"], ["run", "--print-config"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(done.stderr, "olrank: Cannot write to standard output: No space left on device.\n", arguments)

    def test_help_fits_its_columns(self):
        for columns, width in (({}, 100), ({"COLUMNS": "72"}, 72), ({"COLUMNS": "300"}, 100)):
            text = olrank("--help", env={**os.environ, **columns}).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), width)


class Info(unittest.TestCase):
    def test_json_matches_the_table(self):
        machine = json.loads(olrank("info", "--json").stdout)
        self.assertEqual(machine, json.loads(olrank("--json", "info").stdout) | {"memory_bytes": machine["memory_bytes"]})
        self.assertTrue(machine["libtorch"]["version"].startswith("2.11.0"))
        self.assertGreaterEqual(machine["threads"], 1)
        self.assertEqual(machine["cuda"]["devices"] == [], machine["cuda"]["no_device_because"] is not None)
        table = olrank("info").stdout
        for word in (machine["version"], machine["revision"], machine["blas"], machine["cache"]):
            self.assertIn(word, table)


class Run(unittest.TestCase):
    def test_printed_configuration_reads_back_unchanged(self):
        flags = ["--data", "DIR", "--fold", "1", "--ranker", "olranknet", "--covariance", "full", "--width", "16",
                 "--clicks", "perfect", "--rounds", "1000", "--seeds", "1-5", "--alpha", "0.1", "--lambda", "0.1",
                 "--out", "runs/x", "--device", "cpu", "--print-config"]
        first = olrank("run", *flags)
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        self.assertIn("seeds = [1, 2, 3, 4, 5]", first.stdout)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "c.toml")
            file.write_text(first.stdout)
            self.assertEqual(olrank("run", str(file), "--print-config").stdout, first.stdout)

    def test_the_last_setting_wins(self):
        done = olrank("run", "--alpha", "0.2", "--set", "ranker.alpha=0.3", "--alpha", "0.4", "--print-config")
        self.assertIn("\nalpha = 0.4\n", done.stdout)
        done = olrank("run", "--alpha", "0.2", "--set", "ranker.alpha=0.3", "--print-config")
        self.assertIn("\nalpha = 0.3\n", done.stdout)

    def test_every_shipped_configuration_resolves(self):
        for file in sorted(pathlib.Path("configs").glob("*.toml")):
            done = olrank("run", str(file), "--print-config")
            self.assertEqual(done.returncode, 0, f"{file}: {done.stderr}")


class Progress(unittest.TestCase):
    FLAGS = ["--ranker", "pdgd", "--clicks", "perfect", "--seeds", "1,2", "--rounds", "40", "--protocol-eval-every", "20",
             "--data", "synth:small?queries=20&test_queries=5", "--cache", "none"]

    def test_json_events_and_a_log_file(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            log.write_text("earlier\n")
            done = olrank("run", *self.FLAGS, "--out", f"{folder}/out", "--progress", "json", "--log", str(log), "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            events = [json.loads(line) for line in done.stderr.splitlines()]
            names = [event["event"] for event in events]
            self.assertEqual((names[0], names[-1]), ("experiment_started", "finished"))
            self.assertEqual([names.count(name) for name in ("trial_started", "evaluation", "trial_finished")], [2, 6, 2])
            self.assertEqual(events[0]["trials"], 2)
            self.assertEqual(events[1]["trial"], {"ranker": "pdgd", "clicks": "perfect", "fold": 1, "seed": 1})
            self.assertIn("ndcg@10", next(event for event in events if event["event"] == "evaluation")["offline"])
            self.assertEqual(events[-1]["trials"], {"finished": 2, "total": 2})
            lines = log.read_text().splitlines()
            self.assertEqual(lines[0], "earlier")
            self.assertRegex(lines[1], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z olrank run --ranker pdgd ")
            self.assertTrue(any("Running 2 trials of 40 rounds" in line for line in lines), lines)
            # The error that ends a run is in both, too.
            done = olrank("run", *self.FLAGS, "--out", f"{folder}/out", "--progress", "json", "--log", str(log))
            self.assertEqual(done.returncode, 2)
            error = json.loads(done.stderr.splitlines()[-1])
            self.assertEqual((error["event"], error["exit_code"]), ("error", 2))
            self.assertIn(error["message"], log.read_text().splitlines()[-1])

    def test_wrong_values_exit_2_and_a_log_that_cannot_be_written_1(self):
        self.assertIn("Did you mean 'json'?", olrank("info", "--progress", "jsn").stderr)
        self.assertEqual(olrank("info", "--progress", "jsn").returncode, 2)
        self.assertEqual(olrank("info", "--log", "/nonexistent/log").returncode, 1)


if __name__ == "__main__":
    unittest.main()
