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


if __name__ == "__main__":
    unittest.main()
