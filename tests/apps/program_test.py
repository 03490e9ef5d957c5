"""The flavours of the program do these things each in their own way: they end, name their devices and play. usage_test.py has the rest."""

import json
import os
import pathlib
import resource
import re
import subprocess
import tempfile
import unittest

from command_line import PROGRAM, olrank


class Output(unittest.TestCase):
    def test_reports_a_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("this system has no /dev/full")
        # Short and long output, CLI11's and our own, in one piece and in many.
        for arguments in (["info"], ["info", "--settings"], ["tune", "--help"], ["--version"], ["run", "--print-config"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=900)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(done.stderr, "olrank: Cannot write to standard output: No space left on device.\n", arguments)

    def test_a_limit_on_file_sizes_is_an_error_like_a_full_disk(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        with tempfile.TemporaryDirectory() as folder:
            done = olrank("data", "synth", "small?queries=60", "--out", os.path.join(folder, "d"), preexec_fn=small_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("File too large. Raise the limit on the size of files (ulimit -f).", done.stderr)
        self.assertEqual(done.stderr.count("olrank: "), 1)


class Info(unittest.TestCase):
    def test_json_matches_the_table(self):
        machine = json.loads(olrank("info", "--json").stdout)
        self.assertEqual(machine, json.loads(olrank("--json", "info").stdout) | {"memory_bytes": machine["memory_bytes"]})
        header = pathlib.Path(os.environ["OLRANK_BUILD"], "libtorch", "include", "torch", "headeronly", "version.h").read_text()
        built_with = re.findall(r"#define TORCH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
        self.assertEqual(machine["libtorch"]["version"].split("+")[0], ".".join(built_with))
        self.assertGreaterEqual(machine["threads"], 1)
        self.assertEqual(machine["cuda"]["devices"] == [], machine["cuda"]["no_device_because"] is not None)
        self.assertEqual("cuBLASLt" in machine["cuda"]["libraries"], machine["cuda"]["built"])
        table = olrank("info").stdout
        for word in (machine["version"], machine["revision"], machine["blas"], machine["cache"]):
            self.assertIn(word, table)


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


if __name__ == "__main__":
    unittest.main()
