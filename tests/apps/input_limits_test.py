"""Inputs that do not end or unfold to much more: refused in one sentence, with little memory and without delay."""

import gzip
import subprocess
import unittest

from command_line import InFolder, measured, succeed, trial_of


class InputLimits(InFolder):
    def setUp(self):
        super().setUp()
        self.small = self.root / "small.txt"
        self.small.write_text("".join(f"{doc % 3} qid:{doc // 6} {doc % 9 + 1}:1\n" for doc in range(24)))
        *_, self.resident, self.seconds = measured("info")

    def refused(self, code, sentence, megabytes, *arguments, **options):
        with self.subTest(arguments=arguments):
            done, _, said, resident, _ = measured(*arguments, **options)
            self.assertEqual(done, code, said)
            self.assertIn(sentence, said)
            self.assertEqual(said.count("olrank: "), 1, said)
            self.assertLess(resident - self.resident, megabytes)

    def test_a_feature_far_out(self):
        far = self.root / "far.txt"
        far.write_text(self.small.read_text().replace(" 9:1\n", " 100000000:1\n", 1))
        for arguments in (["data", "inspect", far], ["data", "convert", far, "-"],
                          ["run", "--data-train", far, "--data-test", self.small, "--out", self.root / "out"],
                          ["eval", "--data", far, "--scores", self.small]):
            self.refused(1, "far.txt:9:9: With feature 100000000, 24 documents", 10, *arguments)
        self.refused(1, "--max-memory allows 8000000000", 10, "data", "inspect", far, "--max-memory", "8GB")
        self.assertLess(measured("data", "inspect", far)[-1] - self.seconds, 1.0)

    def test_devices_that_never_end(self):
        data = ["--data", self.small]
        run = ["run", "--data-train", self.small, "--data-test", self.small, "--out", self.root / "out"]
        self.refused(1, "/dev/zero:1:2097153: The line is longer than 1.0 MB.", 20, "eval", *data, "--scores", "/dev/zero")
        self.refused(1, "The line is longer than 1.0 MB.", 20, "eval", *data, "--run", "/dev/zero")
        self.refused(1, "The line is longer than 1.0 MB.", 20, "eval", "--qrels", "/dev/zero", "--run", "/dev/zero")
        self.refused(1, "the limit set by --max-memory", 250, "data", "inspect", "/dev/zero", "--max-memory", "50MB")
        self.refused(2, "larger than 8388608 bytes", 20, "run", "/dev/zero")
        self.refused(1, "larger than 1073741824 bytes", 1100, "eval", *data, "--model", "/dev/zero")
        self.refused(1, "The line is longer than 268.4 MB", 1100, *run, "--replay", "/dev/zero")

    def test_pipes_that_never_end(self):
        for line, code, sentence, megabytes, arguments in (
                ("1", 1, "/dev/stdin:25:1: This score has no document", 20,
                 ["eval", "--data", self.small, "--scores", "/dev/stdin"]),
                ("0 Q0 0 1 1 tag", 1, "/dev/stdin:2:6: Document '0' of query '0' is already on line 1.", 20,
                 ["eval", "--data", self.small, "--run", "/dev/stdin"]),
                ("0 qid:1 1:1", 1, "-max-memory allows 10000000", 120, ["data", "inspect", "-", "--max-memory", "10MB"]),
                ('{"qid": "0", "shown": [0], "clicks": [1]}', 1, "--max-memory allows 10.0 MB", 60,
                 ["run", "--data-train", self.small, "--data-test", self.small, "--replay", "/dev/stdin", "--max-memory",
                  "10MB", "--out", self.root / "out"])):
            source = subprocess.Popen(["yes", line], stdout=subprocess.PIPE)
            self.refused(code, sentence, megabytes, *arguments, stdin=source.stdout)
            source.stdout.close()
            source.wait()

    def test_compressed_bombs(self):
        for name, line, sentence in (("names", b"0 qid:1 1:1 # docid = " + b"x" * (1 << 20) + b"\n", "The names of the first"),
                                     ("blanks", b" " * (1 << 20), "the limit set by --max-memory")):
            bomb = self.root / f"{name}.gz"
            with gzip.open(bomb, "wb", compresslevel=1) as file:
                for _ in range(150):
                    file.write(line)
            self.refused(1, sentence, 300, "data", "inspect", bomb, "--max-memory", "20MB")

    def test_texts_that_nest_deeply(self):
        config = self.root / "deep.toml"
        for text, sentence in (("a." * 100000 + "a = 1\n", "more than 64 parts"),
                               ("[" + "a." * 100000 + "a]\n", "more than 64 parts"),
                               ("[data]\nx = " + "[" * 100000 + "]" * 100000 + "\n", "nested")):
            config.write_text(text)
            self.refused(2, sentence, 20, "run", config)
        succeed("run", "--quiet", "--data", "synth:small?queries=20", "--ranker", "pdgd", "--rounds", 2, "--seeds", 1, "--clicks", "perfect",
                "--out", self.root / "deep")
        (trial_of(self.root / "deep") / "summary.json").write_text('{"recipe": ' + "[" * 200000 + "]" * 200000 + "}")
        self.refused(1, "This is not a trial summary", 20, "run", self.root / "deep/config.toml", "--resume")
        code, _, told, resident, _ = measured("report", self.root / "deep")
        self.assertEqual(code, 0, told)
        self.assertLess(resident - self.resident, 20)
        self.assertIn("This file is not a trial summary; its trial is left out.", told)


if __name__ == "__main__":
    unittest.main()
