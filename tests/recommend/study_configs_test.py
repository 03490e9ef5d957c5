"""Every configs/recommend-*.toml is read as written, and runs with small data, one seed and one value."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from command_line import olrank  # noqa: E402

CONFIGS = sorted(pathlib.Path("configs").glob("recommend-*.toml"))


def made_small(text):
    text = re.sub(r"synth:(factors|trees)\?[^\"]*", r"synth:\1?users=60&items=60&features=12&reviews=700&seed={seed}", text)
    text = re.sub(r"seeds = \[.*\]", "seeds = [1]", text)
    text = re.sub(r"values = \[(\"[^\"]*\").*\]", r"values = [\1]", text)
    text = re.sub(r"^(passes|patience|dimension) = .*\n", "", text, flags=re.M)
    small = "passes = 1\n" + ("" if 'sweep = "dimension"' in text else "dimension = 4\n")
    return text.replace("[recommend]\n", "[recommend]\n" + small)


class StudyConfigs(unittest.TestCase):
    def test_the_command_in_the_head_names_the_file(self):
        self.assertGreater(len(CONFIGS), 5)
        for config in CONFIGS:
            self.assertIn(f"olrank recommend study {config} --out", config.read_text())

    def test_files_are_read_as_written(self):
        for config in CONFIGS:
            done = olrank("recommend", "study", config, "--dry-run")
            self.assertEqual(done.returncode, 0, f"{config}: {done.stderr}")

    def test_studies_run(self):
        for config in CONFIGS:
            with tempfile.TemporaryDirectory() as folder:
                small = pathlib.Path(folder) / config.name
                small.write_text(made_small(config.read_text()))
                done = olrank("recommend", "study", small, "--out", pathlib.Path(folder) / "out", "--threads", 1, "--json")
                self.assertEqual(done.returncode, 0, f"{config}: {done.stderr}")
                for row in json.loads(done.stdout):
                    self.assertEqual(row["seeds"], 1)


if __name__ == "__main__":
    unittest.main()
