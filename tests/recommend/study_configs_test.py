"""Every configs/recommend-*.toml is read as written, and runs with small data, one seed and one value."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from command_line import succeed  # noqa: E402

CONFIGS = sorted(pathlib.Path("configs").glob("recommend-*.toml"))


def made_small(text):
    text = re.sub(r"synth:(factors|trees)\?[^\"]*", r"synth:\1?users=60&items=60&features=12&reviews=700&seed={seed}", text)
    text = re.sub(r"seeds = \[.*\]", "seeds = [1]", text)
    text = re.sub(r"values = \[(\"[^\"]*\").*\]", r"values = [\1]", text)
    text = re.sub(r"^(passes|patience|dimension) = .*\n", "", text, flags=re.M)
    small = "passes = 1\n" + ("" if 'sweep = "dimension"' in text else "dimension = 4\n")
    return text.replace("[recommend]\n", "[recommend]\n" + small)


class StudyConfigs(unittest.TestCase):
    def test_each_is_read_as_written_and_runs_small(self):
        self.assertGreater(len(CONFIGS), 5)
        for config in CONFIGS:
            with self.subTest(config), tempfile.TemporaryDirectory() as folder:
                self.assertIn(f"olrank recommend study {config} --out", config.read_text())
                succeed("recommend", "study", config, "--dry-run")
                small = pathlib.Path(folder) / config.name
                small.write_text(made_small(config.read_text()))
                rows = succeed("recommend", "study", small, "--out", pathlib.Path(folder) / "out", "--threads", 1, "--json")
                for row in json.loads(rows):
                    self.assertEqual(row["seeds"], 1)


if __name__ == "__main__":
    unittest.main()
