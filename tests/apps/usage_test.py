"""The program's command line: exit codes, stdout and stderr, flags before and after the command."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from command_line import PROGRAM, olrank


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

    def test_flags_of_other_programs_get_their_names_here(self):
        for command, flag, here in (
            ("run", "--gpu", "--device cuda"), ("run", "--normalize", "--data-normalise"), ("serve", "--normalize", "--normalise"),
            ("run", "--algo", "--ranker"), ("run", "--k", "--cutoff"), ("eval", "--k", "--at"), ("run", "--folds", "--fold"),
            ("run", "--lr", "--learning-rate"),
        ):
            done = olrank(command, flag, "1")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"olrank: Unknown flag '{flag}'. Did you mean '{here}'? See 'olrank {command} --help'.\n")
        self.assertIn("'train'", olrank("fit").stderr)

    def test_dropped_names_are_refused_with_what_replaces_them(self):
        for command, flag, here in (("run", "--share-members", "use --shard I/N"),):
            done = olrank(command, flag)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), flag)
            self.assertTrue(done.stderr.startswith(f"olrank: {flag} is gone"), done.stderr)
            self.assertIn(here, done.stderr)

    def test_nothing_is_suggested_that_is_not_close(self):
        self.assertEqual(olrank("run", "--zzzzqqq").stderr, "olrank: Unknown flag '--zzzzqqq'. See 'olrank run --help'.\n")
        self.assertIn("Unknown command 'frobnicate'. The commands are run, train, tune,", olrank("frobnicate").stderr)

    def test_help_is_a_command(self):
        self.assertEqual(olrank("help").stdout, olrank("--help").stdout)
        self.assertEqual(olrank("help", "run").stdout, olrank("run", "--help").stdout)
        self.assertEqual(olrank("help", "data", "split").stdout, olrank("data", "split", "--help").stdout)
        self.assertEqual(olrank("run", "--eval-every", "7", "--print-config").stdout.count("eval_every = 7\n"), 1)

    def test_values_that_are_missing_or_no_numbers(self):
        for arguments, said in (
            (["serve", "--port", "80x"], "--port must be a number, not '80x'."),
            (["serve", "--port", "80.5"], "--port must be a whole number, not '80.5'."),
            (["serve", "--port", "99999999999"], "--port must be a smaller number, not '99999999999'."),
            (["serve", "--window", "0.5"], "--window must be a whole number, not '0.5'."),
            (["serve", "--port", "1", "--port", "2"], "--port is given more than once."),
            (["run", "--out"], "--out needs a value."),
        ):
            done = olrank(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"olrank: {said} See 'olrank --help'.\n")

    def test_a_flag_is_not_taken_for_a_value(self):
        for arguments, said in ((["run", "--data", "synth:small", "--out", "--quiet"], "--out needs a value, but '--quiet'"),
                                (["report", "x", "--figures", "--json"], "--figures needs a value, but '--json'"),
                                (["data", "synth", "small", "--out", "--json"], "--out needs a value, but '--json'")):
            done = olrank(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"olrank: {said} follows, which is a flag.\n")

    def test_wrong_usage_exits_2(self):
        for arguments in ([], ["info", "more"], ["run", "--alpha"], ["run", "--alpha", "x"], ["run", "a.toml", "b.toml"],
                          ["run", "/nonexistent.toml"], ["--quiet", "--verbose", "info"], ["--json", "info", "--settings"]):
            done = olrank(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr.startswith("olrank: "), arguments)
            self.assertEqual(done.stdout, "", arguments)

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
