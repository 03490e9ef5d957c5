#!/usr/bin/env python3
"""The pages have the figures of their records, and evidence/pages.py notices figures that differ, that have no record and that
are no longer in the table that they are quoted from."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "evidence"))
import field  # noqa: E402
import pages  # noqa: E402


def run(*arguments, cwd=ROOT):
    return subprocess.run([sys.executable, ROOT / "evidence/pages.py", *arguments], cwd=cwd, capture_output=True, text=True, check=False)


class Records(unittest.TestCase):
    def test_the_pages_match_their_records(self):
        done = run("--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_console_of_the_readme_is_what_the_program_prints_now(self):
        """As far as a short run can tell: the columns of the table."""
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([os.environ["OLRANK_PROGRAM"], "run", "--data", "synth:small?queries=10", "--ranker", "pairrank,pdgd", "--clicks",
                                   "perfect", "--rounds", "5", "--seeds", "1,2", "--out", f"{out}/o", "--quiet"], capture_output=True, text=True, check=True)
        lines = (ROOT / "README.md").read_text().splitlines()
        headers = [[line.split() for line in text if line.startswith("clicks ")] for text in (done.stdout.splitlines(), lines)]
        self.assertEqual(len(headers[0]), 1)
        self.assertEqual(*headers)


class Agreement(unittest.TestCase):
    def test_the_table_of_agreement_is_of_the_pinned_versions_and_within_rounding(self):
        rows = json.loads((ROOT / "docs/evidence/benchmarks.json").read_text())["field"]["rows"]
        versions = dict(pin.split("==") for pin in field.PINS) | {"ULTRA_pytorch": field.ULTRA_COMMIT[:8]}
        self.assertEqual({one["package"] for one in rows} | {"pytrec-eval-terrier"}, set(versions))
        for one in rows:
            self.assertEqual(one["version"], versions[one["package"]])
            if one["cases"]:
                self.assertLessEqual(one["difference"], field.LARGEST[one["package"]], one["theirs"])
            else:
                self.assertTrue(one["note"], one["theirs"])


class Figures(unittest.TestCase):
    def found(self, sentence):
        text = f"# A\n{sentence}\n"
        return [text[begin:end] for begin, end in pages.figures_of(text)["A"]]

    def test_decimals_intervals_and_numbers_with_units_are_figures(self):
        self.assertEqual(self.found("reaches 0.706 ± 0.010, −.4 and +1,234.5 in 3 ms, 20 % or 1.5 times"),
                         ["0.706 ± 0.010", "−.4", "+1,234.5", "3", "20", "1.5"])

    def test_versions_code_links_settings_and_levels_are_none(self):
        self.assertEqual(self.found("LibTorch 2.11.0, `0.5 ms`, LETOR 4.0, [a](x0.5.md), the 95 % t interval, α = 0.03, Lemma 3.3, 12 rounds"), [])

    def test_a_quoted_figure_is_one_of_the_table_rounded(self):
        numbers = pages.numbers_of("+.0110 ± .0103")
        self.assertTrue(pages.rounds_to(numbers, ".011 ± .010") and pages.rounds_to(numbers, "0.01"))
        self.assertFalse(pages.rounds_to(numbers, ".012 ± .010") or pages.rounds_to(numbers, ".01100"))


class Notices(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(ROOT / "docs", self.folder / "docs")
        shutil.copy(ROOT / "README.md", self.folder)
        shutil.copy(ROOT / "CMakeLists.txt", self.folder)

    def change(self, file, old, new):
        path = self.folder / file
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def refused(self, sentence):
        done = run("--check", cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(sentence, done.stderr)

    def test_a_page_that_differs_and_writes_it_again(self):
        before = (self.folder / "README.md").read_text()
        self.change("README.md", "perfect  p2neurrank", "perfect  p3neurrank")
        self.refused("README.md differs")
        self.assertEqual(run(cwd=self.folder).returncode, 0)
        self.assertEqual((self.folder / "README.md").read_text(), before)

    def test_the_rule_of_auto_has_the_figures_of_the_records(self):
        path = self.folder / "docs/evidence/2026-11-27-h100/speed.json"
        path.write_text(path.read_text().replace('"seconds_of_one": 0.80', '"seconds_of_one": 0.90', 1))
        self.refused("jobs/device_choice.cpp: kGpuThousandRounds is 0.80, but the record says 0.9004")

    def test_records_that_change_figures_without_one_and_quotes_that_have_left_their_table(self):
        self.change("docs/TUNING.md", "\n## ", "\nIt takes 0.5 ms.\n\n## ")
        self.change("docs/GPU.md", "\n## ", "\nIt takes 0.5 ms.\n\n## ")
        path = self.folder / "docs/evidence/papers.json"
        before, name, after = path.read_text().partition('"linear-mq2008": {')
        path.write_text(before + name + after.replace('"offline": 0.4', '"offline": 0.5', 1))
        path = self.folder / "docs/evidence/benchmarks.json"
        found = json.loads(path.read_text())
        for row in found["peers"]["rows"]:
            row["ratio"] = 3 * row.get("ratio", 0)
        path.write_text(json.dumps(found))
        said = run("--check", cwd=self.folder).stderr
        for sentence in ("PAPERS-CLAIMS.md differs", "docs/GPU.md", "is not in the table \"peers peers\" any more"):
            self.assertIn(sentence, said)
        self.assertNotIn("docs/TUNING.md", said)  # a page of definitions


if __name__ == "__main__":
    unittest.main()
