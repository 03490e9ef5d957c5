"""The program's command line: exit codes, stdout and stderr, flags before and after the command."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from command_line import PROGRAM, CommandTest, olrank


class Frame(CommandTest):
    def test_wrong_usage_gets_one_line_that_names_what_may_be_meant(self):
        self.assertGreater(len([*self.refusals("", "usage")]), 30)

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

    def test_the_page_of_settings_is_what_the_program_says(self):
        page = pathlib.Path("docs/CONFIGURATION.md")
        self.assertEqual(page.read_text(), olrank("info", "--settings").stdout, f"rewrite it: build/bin/olrank info --settings > {page}")

    def test_every_shipped_configuration_resolves(self):
        for file in sorted(pathlib.Path("configs").rglob("*.toml")):
            recommends = file.name.startswith("recommend-")
            done = olrank("recommend", "study", str(file), "--dry-run") if recommends else \
                olrank("run", str(file), "--print-config")
            self.assertEqual(done.returncode, 0, f"{file}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
