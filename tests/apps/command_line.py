"""The program as a child process, and what the tests of its commands share."""

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]


def olrank(*arguments, **options):
    """Outside the shard that a scheduler may have chosen for these tests, unless `env` is given."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("SLURM_", "JOB_COMPLETION")) and name not in ("RANK", "WORLD_SIZE")}
    options = {"timeout": 300, "env": environment, **options}
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, **options)


def succeed(*arguments):
    """What the command prints; it must end with exit code 0."""
    done = olrank(*arguments)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def curve(trial):
    """Every evaluation without its seconds, which differ between runs."""
    points = [json.loads(line) for line in (trial / "curve.jsonl").read_text().splitlines()]
    for point in points:
        del point["seconds"]
    return points


class CommandTest(unittest.TestCase):
    def refused(self, code, sentence, *arguments):
        """The command ends with this exit code and one line that has the sentence."""
        done = olrank(*arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), (arguments, done.stderr))
        self.assertIn(sentence, done.stderr)

    def refusals(self, command, section=None, **places):
        """Each refusal of the command in refusals.txt, after it was played; {name} there stands for a place."""
        _, _, text = pathlib.Path(__file__).with_name("refusals.txt").read_text().partition(f"\n[{section or command}]\n")
        lines = text.partition("\n[")[0].splitlines()
        self.assertGreater(len(lines), 5, command)
        for line in lines:
            said, _, words = line.partition(" <-")
            code, _, sentence = said.partition(" ")
            with self.subTest(line):
                self.refused(int(code), sentence, *command.split(), *(word.format(**places) for word in shlex.split(words)))
            yield line


class InFolder(CommandTest):
    """Has an empty folder, by two names."""

    def setUp(self):
        self.folder = self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
