"""A user who follows the advice printed where tests of real data skip gets those tests, and a program that still starts."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]
TESTS = pathlib.Path(os.environ["OLRANK_BUILD"], "bin/tests/core_data_test")
HERE = pathlib.Path(os.environ.get("OLRANK_REAL_DATA", "../shared/data")).resolve()


class RealDataAdvice(unittest.TestCase):
    def setUp(self):
        # The tests find no data beside this folder.
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "checkout")
        self.folder.mkdir()

    def run_in_folder(self, *command, **more):
        environment = {name: value for name, value in os.environ.items() if name != "OLRANK_REAL_DATA"}
        return subprocess.run(command, cwd=self.folder, env={**environment, **more}, capture_output=True, text=True, timeout=900)

    def run_tests(self, **more):
        return self.run_in_folder(TESTS, "--gtest_filter=RealData.*", **more)

    def test_every_advice_names_a_variable_that_the_program_leaves_alone(self):
        advice = re.search(r"set (\w+) to the folder that holds", self.run_tests().stdout)
        self.assertIsNotNone(advice)
        for file in pathlib.Path("tests").rglob("*_test.py"):
            for variable in re.findall(r"skipTest\(.*set (\w+) to", file.read_text()):
                self.assertEqual(variable, advice[1], file)
        done = self.run_in_folder(PROGRAM, "run", "--data", "synth:small", "--print-config", **{advice[1]: "/data"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_advice_brings_the_tests(self):
        skipped = self.run_tests().stdout
        self.assertNotIn("[       OK ]", skipped)
        variable = re.search(r"set (\w+) to the folder that holds", skipped)[1]
        data = HERE
        if not (HERE / "mq2008").is_dir():  # the tests then run, and fail for want of real contents
            data = self.folder / "data"
            (data / "mq2008").mkdir(parents=True)
            (data / "mq2008/S1.txt.gz").write_bytes(b"")
        followed = self.run_tests(**{variable: str(data)})
        self.assertNotIn("SKIPPED", followed.stdout)
        self.assertEqual(followed.returncode == 0, data == HERE, followed.stdout)


if __name__ == "__main__":
    unittest.main()
