"""The completion script completes commands, flags, values and files."""

import re
import shutil
import subprocess
import tempfile
import unittest

from command_line import olrank, succeed

COMPLETE = """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_olrank
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = succeed("completion", "bash")

    def completed(self, *words):
        """The answers to a tab after the last word."""
        done = subprocess.run(["bash", "-c", self.script + COMPLETE, "bash", "olrank", *words], check=True, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_completes_commands_flags_and_values(self):
        self.assertEqual(self.completed("tr"), ["train"])
        self.assertIn("covariance", self.completed("bench", ""))
        self.assertEqual(self.completed("run", "--see"), ["--seeds"])
        self.assertEqual(self.completed("run", "x.toml", "--protocol-na"), ["--protocol-name"])
        self.assertEqual(self.completed("train", "--optimizer", "og"), ["ogd-average"])
        self.assertEqual(self.completed("train", "--optimizer", "=", "og"), ["ogd-average"])
        self.assertIn("--json", self.completed("bench", "ops", "--j"))
        self.assertNotIn("dbgd", self.completed("serve", "--ranker", ""))
        self.assertIn("dbgd", self.completed("run", "--ranker", ""))

    def test_names_the_rankers_that_a_service_starts(self):
        named = self.completed("serve", "--ranker", "")
        for kind in self.completed("run", "--ranker", ""):
            with tempfile.TemporaryDirectory() as folder:
                groups = ["--groups", "beta=1"] if kind == "fairco" else []
                done = olrank("serve", "--state", f"{folder}/s", "--features", "3", "--ranker", kind, "--learn-only", *groups)
            self.assertEqual(done.returncode == 0, kind in named, (kind, done.stderr))

    def test_leaves_files_to_the_shell(self):
        self.assertEqual(self.completed("run", "--out", "ru"), [])
        self.assertEqual(self.completed("run", "conf"), [])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is missing")
    def test_zsh_takes_the_script_of_bash(self):
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:
            file.write(self.script)
            file.flush()
            done = subprocess.run(["zsh", "-fc", "autoload -Uz compinit bashcompinit && compinit -u -D && bashcompinit && "
                                   f"source {file.name} && whence -w _olrank"], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("_olrank: function\n", ""))

    def test_every_command_has_its_line(self):
        for name in re.findall(r"^  ([a-z]+) ", succeed("--help").partition("SUBCOMMANDS")[2] or succeed("--help").partition("Subcommands")[2], re.M):
            self.assertIn(f"    '{name}') commands=", self.script)

    def test_refuses_other_shells(self):
        done = olrank("completion", "fish")
        self.assertEqual((done.returncode, done.stderr), (2, "olrank: There is no completion for 'fish': choose bash; zsh takes it after 'autoload -U bashcompinit && bashcompinit'.\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
