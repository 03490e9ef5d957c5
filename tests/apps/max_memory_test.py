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


class DataTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(dir=os.environ.get("OLRANK_BUILD"))  # not on a tmpfs
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = temporary.name
        self.addCleanup(lambda: os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before))

    def run_program(self, *arguments, code=0, **environment):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def refused(self, sentence, *arguments, code=1, **environment):
        said = self.run_program(*arguments, code=code, **environment)
        self.assertEqual(said.count("olrank: "), 1, said)
        self.assertIn(sentence, said)


class MaxMemory(DataTest):
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

    def test_a_log_beyond_the_limit(self):
        log = self.root / "log.jsonl"
        log.write_text("".join(f'{{"qid":"{number % 100}","shown":[{number % 6},{(number + 1) % 6}],"clicks":[{number % 2},1]}}\n'
                               for number in range(45_000)))
        parts = ["--data-train", self.text(), "--data-test", self.text()]
        play = ["run", *parts, "--ranker", "pdgd", "--network", "linear", "--replay", log, "--rounds", 45_000,
                "--protocol-eval-every", 45_000, "--cache", "none", "--out"]
        said = self.run_program(*play, self.root / "dense")
        self.assertNotIn("--max-memory", said)
        said = self.run_program(*play, self.root / "stored", "--max-memory", "100kB")
        self.assertIn(f"The rounds of {log} go beyond --max-memory 100.0 kB, to files in '{self.root}'", said)
        model = "trials/pdgd/recorded/fold1/seed1/model.safetensors"
        self.assertEqual((self.root / "dense" / model).read_bytes(), (self.root / "stored" / model).read_bytes())


if __name__ == "__main__":
    unittest.main()
