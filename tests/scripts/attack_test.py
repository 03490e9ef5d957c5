"""scripts/attack finds what breaks and what holds, and says so; its parts are played whole by scripts/nightly."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def attack(*arguments, program=os.environ["OLRANK_PROGRAM"]):
    command = [sys.executable, ROOT / "scripts" / "attack", *arguments, "--program", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=900)


class Attack(unittest.TestCase):
    def test_a_part_counts_what_it_tried_and_records_it(self):
        with tempfile.TemporaryDirectory() as folder:
            done = attack("requests", "--seconds", "1", "--seed", "7", "--json", f"{folder}/record.json")
            record = json.loads(pathlib.Path(folder, "record.json").read_text())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual((record["seed"], list(record["parts"])), (7, ["requests"]))
        part = record["parts"]["requests"]
        self.assertGreater(part["tried"], 0)
        self.assertEqual((part["broken"], part["held"]), (0, part["tried"]))
        self.assertIn(f"requests: {part['tried']} tried, {part['held']} held, 0 broken", done.stdout)

    def test_a_program_that_breaks_is_found(self):
        done = attack("requests", "--seconds", "1", program="/bin/false")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("requests: 1 tried, 0 held, 1 broken", done.stdout)

    def test_its_parts_are_named(self):
        self.assertIn("sends mutated rankings", attack("--help").stdout)
        done = attack("disk")
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no part disk; there are requests, ", done.stderr)


if __name__ == "__main__":
    unittest.main()
