#!/usr/bin/env python3
"""scripts/bundle: what it packs, and how large it may be. Stands on programs of this machine in place of olrank's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class BundleTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root, self.target = Path(scratch.name) / "root", Path(scratch.name) / "bundle"
        (self.root / "scripts").mkdir(parents=True)
        for name in ("bundle", "gpu-evidence"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts" / name)
        shutil.copytree(ROOT / "evidence", self.root / "evidence")
        for place in ("build/bin/olrank", "build/bin/device_bench", "build/bin/tests/cuda_test", "build/bin/tests/other_test",
                      ".deps/compute-sanitizer/nvidia/cu13/bin/compute-sanitizer", ".deps/compute-sanitizer/nvidia/cu13/lib/libsanitizer.so",
                      ".deps/compute-sanitizer/a.dist-info/licenses/License.txt"):
            path = self.root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/true", path)
        (self.root / "configs").mkdir()

    def bundle(self, *more: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.root / "scripts/bundle", self.target, *more], capture_output=True, text=True, check=False)

    def packed(self) -> set[str]:
        return {str(path.relative_to(self.target)) for path in self.target.rglob("*") if path.is_file() and os.access(path, os.X_OK)}

    def test_packs_every_test_and_the_sanitizer(self) -> None:
        done = self.bundle()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual({"bin/olrank", "bin/device_bench", "bin/gpu-evidence", "tests/cuda_test", "tests/other_test",
                              "compute-sanitizer/compute-sanitizer", "olrank", "gpu-evidence"}, self.packed())

    def test_a_small_one_has_what_evidence_needs_and_no_more_than_53_mib(self) -> None:
        done = self.bundle("--small")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.packed() & {"bin/olrank", "bin/device_bench", "tests/cuda_test", "tests/other_test",
                                          "compute-sanitizer/compute-sanitizer"}, {"bin/olrank", "bin/device_bench", "tests/cuda_test"})
        (self.root / "configs/large.bin").write_bytes(bytes(54 << 20))
        done = self.bundle("--small")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the bundle takes 54 MiB, but may take 53; the largest are configs", done.stderr)
        self.assertEqual(self.bundle().returncode, 0)

    def test_says_how_it_is_used(self) -> None:
        for words in (("--large",), ("--small", "--small")):
            self.assertIn("usage: scripts/bundle DIR [--small]", self.bundle(*words).stderr)


if __name__ == "__main__":
    unittest.main()
