"""The program's command line: exit codes, stdout and stderr, flags before and after the command."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from command_line import PROGRAM, CommandTest, olrank


class Frame(CommandTest):
    def test_help_and_version(self):
        for arguments in (["--help"], ["info", "--help"], ["run", "--help"]):
            done = olrank(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertIn("--json", olrank("--help").stdout)
        self.assertRegex(olrank("--version").stdout, r"^olrank \d+\.\d+\.\d+ \(\S+\)\n$")

    def test_wrong_usage_gets_one_line_that_names_what_may_be_meant(self):
        self.assertGreater(len([*self.refusals("", "usage")]), 30)

    def test_help_is_a_command(self):
        self.assertEqual(olrank("help").stdout, olrank("--help").stdout)
        self.assertEqual(olrank("help", "run").stdout, olrank("run", "--help").stdout)
        self.assertEqual(olrank("help", "data", "split").stdout, olrank("data", "split", "--help").stdout)
        self.assertEqual(olrank("run", "--eval-every", "7", "--print-config").stdout.count("eval_every = 7\n"), 1)

    def test_help_fits_its_columns(self):
        for columns, width in (({}, 100), ({"COLUMNS": "72"}, 72), ({"COLUMNS": "300"}, 100)):
            text = olrank("--help", env={**os.environ, **columns}).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), width)

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root may read everything")
    def test_unreadable_files_are_not_said_to_need_write_permission(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            file, closed = os.path.join(folder, "c.toml"), os.path.join(folder, "closed")
            pathlib.Path(file).write_text("[protocol]\n")
            os.mkdir(closed)
            os.chmod(file, 0)
            os.chmod(closed, 0)
            # Root without its privileges stays the owner of the checkout, which others may not be able to read.
            user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
            for arguments, action in ((["run", file], f"read '{file}'"), (["report", closed], f"read '{closed}/manifest.json'"),
                                      (["run", "--data", closed], f"read the folder '{closed}'"),
                                      (["run", "--data", "synth:small", "--out", closed], f"open the folder '{closed}'")):
                done = subprocess.run([*user, PROGRAM, *arguments], capture_output=True, text=True, timeout=900, cwd="/")
                self.assertEqual(done.stderr, f"olrank: Cannot {action}: Permission denied. Make it readable for you (chmod), "
                                 "or run as its owner.\n", arguments)
                self.assertIn(done.returncode, (1, 2))
            os.chmod(closed, 0o755)


class Run(unittest.TestCase):
    def test_the_page_of_settings_is_what_the_program_says(self):
        page = pathlib.Path("docs/CONFIGURATION.md")
        self.assertEqual(page.read_text(), olrank("info", "--settings").stdout, f"rewrite it: build/bin/olrank info --settings > {page}")

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
        done = olrank("run", "--ranker", "pairrank", "--alpha", "0.2", "--set", "ranker.alpha=0.3", "--alpha", "0.4", "--print-config")
        self.assertIn("\nalpha = 0.4\n", done.stdout)
        done = olrank("run", "--ranker", "pairrank", "--alpha", "0.2", "--set", "ranker.alpha=0.3", "--print-config")
        self.assertIn("\nalpha = 0.3\n", done.stdout)

    def test_every_shipped_configuration_resolves(self):
        for file in sorted(pathlib.Path("configs").rglob("*.toml")):
            recommends = file.name.startswith("recommend-")
            done = olrank("recommend", "study", str(file), "--dry-run") if recommends else \
                olrank("run", str(file), "--print-config")
            self.assertEqual(done.returncode, 0, f"{file}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
