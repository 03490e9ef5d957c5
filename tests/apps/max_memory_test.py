"""Features beyond --max-memory lie in files: equal results, bounded memory, and one sentence where that cannot be."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import larger_than_memory  # noqa: E402

PROGRAM = os.environ["OLRANK_PROGRAM"]
SOURCE = "synth:mslr-like?queries=500&test_queries=100"  # 46 MB of features
TINY = "synth:small?queries=200"


class MaxMemory(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(dir=os.environ.get("OLRANK_BUILD"))  # not on a tmpfs
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = temporary.name
        self.addCleanup(lambda: os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before))

    def test_four_times_the_limit(self):
        _, _, base = larger_than_memory.measured([PROGRAM, "data", "inspect", self.text()])
        for step, (dense, limited) in larger_than_memory.compared(PROGRAM, SOURCE, "10MB", self.root):
            with self.subTest(step=step):
                self.assertEqual(dense[3], limited[3])
                self.assertNotIn("--max-memory", dense[0])
                self.assertEqual(limited[0].count("go beyond --max-memory 10.0 MB, to a file in"), 1, limited[0])
                self.assertGreater(dense[2] - base, 30e6)
                self.assertLess(limited[2] - base, 20e6)

    def text(self):
        file = self.root / "small.txt"
        file.write_text("".join(f"{doc % 3} qid:{doc // 6} 1:{doc % 7} 2:1\n" for doc in range(600)))
        return file

    def refused(self, sentence, *arguments, **environment):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("olrank: "), 1, done.stderr)
        self.assertIn(sentence, done.stderr)

    def test_what_cannot_be(self):
        inspect = ["data", "inspect", self.text(), "--max-memory"]
        self.refused("The 6 documents of query '0' need 48 bytes, but --max-memory allows 47 bytes.", *inspect, "47B")
        blocked = self.root / "blocked"
        blocked.write_text("")
        self.refused(f"Cannot create the folder '{blocked}", *inspect, "1kB", XDG_CACHE_HOME=str(blocked))
        self.refused("but its disk has only", "data", "synth", "mslr-like?queries=10000000&docs=10000", "--max-memory", "1GB",
                     "--out", self.root / "out", XDG_CACHE_HOME=str(self.root))
        if os.path.ismount("/dev/shm"):
            self.refused("is memory itself (tmpfs)", *inspect, "1kB", XDG_CACHE_HOME="/dev/shm/olrank-test")
            os.rmdir("/dev/shm/olrank-test/olrank/data")
            os.removedirs("/dev/shm/olrank-test/olrank")


if __name__ == "__main__":
    unittest.main()
