"""scripts/install-packages beside another apt-get: waits for its locks, shows that it is at work, and says why it gives up."""

import os
import pathlib
import subprocess
import tempfile
import unittest

# Fails until it has been called as often as the file "locked" says, and notes its calls.
APT_GET = """#!/bin/bash
here=$(dirname "$0")
echo "$*" >>"$here/calls"
(($(wc -l <"$here/calls") > $(cat "$here/locked"))) || { echo "$1 is at work"; cat "$here/error" >&2; exit 100; }
echo "Setting up a package"
"""
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n"


class InstallPackages(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # No package is installed, and this user is root.
        for name, text in (("apt-get", APT_GET), ("dpkg-query", "#!/bin/sh\n"), ("id", "#!/bin/sh\necho 0\n")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run_script(self, locked, error):
        (self.folder / "locked").write_text(str(locked))
        (self.folder / "error").write_text(error)
        done = subprocess.run(["scripts/install-packages", "test"], env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
                              capture_output=True, text=True, timeout=900)
        return done, [line.split()[-1] if "update" in line else "install" for line in (self.folder / "calls").read_text().splitlines()]

    def test_waits_for_the_lock_of_the_lists(self):
        done, calls = self.run_script(2, LOCKED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(calls, ["update", "update", "update", "install"])
        self.assertEqual(done.stderr.count("waiting for it"), 1)
        self.assertIn("  Setting up a package", done.stderr)

    def test_another_error_ends_it_at_once(self):
        done, calls = self.run_script(2, "E: The repository is not signed.\n")
        self.assertEqual((done.returncode, calls), (1, ["update"]))
        self.assertIn("not signed", done.stderr)
        self.assertIn("apt-get update failed", done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
