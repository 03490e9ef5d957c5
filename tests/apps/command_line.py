"""The program as a child process, and what the tests of its commands share."""

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]
# Has LibTorch loaded and runs commands in children of its own: a start of the program takes .35 s of processor time.
FORKING = pathlib.Path(os.environ["OLRANK_BUILD"], "bin", "tests", "forking_olrank")
READ_BY_LIBRARIES = ("LD_", "OMP_", "MKL_", "KMP_", "MALLOC_")  # while they are loaded
forking = None


def forked(arguments, environment):
    global forking
    if forking is None:
        forking = subprocess.Popen([FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as errors:
        command = {"arguments": arguments, "folder": os.getcwd(), "environment": environment, "output": output.name, "errors": errors.name}
        forking.stdin.write(json.dumps(command) + "\n")
        forking.stdin.flush()
        return subprocess.CompletedProcess([PROGRAM, *arguments], int(forking.stdout.readline()), output.read(), errors.read())


def olrank(*arguments, env=None, **options):
    """Outside the shard that a scheduler may have chosen for these tests, unless `env` is given."""
    environment = env or {name: value for name, value in os.environ.items()
                          if not name.startswith(("SLURM_", "JOB_COMPLETION")) and name not in ("RANK", "WORLD_SIZE")}
    arguments = [str(word) for word in arguments]
    loads = [{pair for pair in one.items() if pair[0].startswith(READ_BY_LIBRARIES)} for one in (environment, os.environ)]
    if not options and FORKING.exists() and loads[0] == loads[1] and PROGRAM == str(FORKING.parents[1] / "olrank"):
        return forked(arguments, environment)
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment, **options)


def succeed(*arguments):
    """Returns what the command prints; it must end with exit code 0."""
    done = olrank(*arguments)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def trial_of(out, ranker="pdgd", user="perfect", seed=1):
    return pathlib.Path(out, "trials", ranker, user, "fold1", f"seed{seed}")


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def curve(trial):
    """Every evaluation without its seconds, which differ between runs."""
    points = [json.loads(line) for line in (trial / "curve.jsonl").read_text().splitlines()]
    for point in points:
        del point["seconds"]
    return points


def has_passes(out, count=3):
    """Says whether a training has evaluated so many times."""
    file = out / "curve.jsonl"
    return lambda: file.exists() and file.read_text().count("\n") >= count


class Places(dict):
    """A place that is not given has its own name."""

    def __missing__(self, name):
        return name


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
                self.refused(int(code), sentence, *command.split(), *(word.format_map(Places(places)) for word in shlex.split(words)))
            yield line


def measured(*arguments, stdin=subprocess.DEVNULL):
    """Exit code, output, messages, megabytes of memory at most, seconds of a processor."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=stdin, stdout=out, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, said):
            file.seek(0)
        return process.returncode, out.read(), said.read(), usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


class InFolder(CommandTest):
    """Has an empty folder, by two names."""

    def setUp(self):
        self.folder = self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *arguments):
        """The program beside the test."""
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def wait_until(self, holds, process):
        """The process must run until then."""
        while not holds():
            self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
            time.sleep(0.01)

    def signalled(self, number, holds, *arguments):
        """Ends a command by a signal when something holds, and returns its exit code and messages."""
        process = self.start(*arguments)
        self.wait_until(holds, process)
        process.send_signal(number)
        said = process.communicate(timeout=900)[1]
        return process.returncode, said
