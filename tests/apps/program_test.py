"""The program as a process: exit codes, stdout and stderr, flags before and after the command."""

import json
import os
import pathlib
import resource
import shutil
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
            (["serve", "--port", "80.5"], "--port must be a smaller or whole number, not '80.5'."),
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

    def test_a_limit_on_file_sizes_is_an_error_like_a_full_disk(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        with tempfile.TemporaryDirectory() as folder:
            done = olrank("data", "synth", "small?queries=60", "--out", os.path.join(folder, "d"), preexec_fn=small_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large. Raise the limit on the size of files (ulimit -f).", done.stderr)
        self.assertEqual(done.stderr.count("olrank: "), 1)

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
                done = subprocess.run([*user, PROGRAM, *arguments], capture_output=True, text=True, timeout=60, cwd="/")
                self.assertEqual(done.stderr, f"olrank: Cannot {action}: Permission denied. Make it readable for you (chmod), "
                                 "or run as its owner.\n", arguments)
                self.assertIn(done.returncode, (1, 2))
            os.chmod(closed, 0o755)


class Info(unittest.TestCase):
    def test_json_matches_the_table(self):
        machine = json.loads(olrank("info", "--json").stdout)
        self.assertEqual(machine, json.loads(olrank("--json", "info").stdout) | {"memory_bytes": machine["memory_bytes"]})
        self.assertTrue(machine["libtorch"]["version"].startswith("2.11.0"))
        self.assertGreaterEqual(machine["threads"], 1)
        self.assertEqual(machine["cuda"]["devices"] == [], machine["cuda"]["no_device_because"] is not None)
        self.assertEqual("cuBLASLt" in machine["cuda"]["libraries"], machine["cuda"]["built"])
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
