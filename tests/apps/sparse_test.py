"""Data with 100,000 columns, few of which a document has: training, ranking, evaluation and rounds, in little memory."""

import json
import random
import unittest

from command_line import InFolder, measured, summary

COLUMNS = 100_000
QUERIES = 100
DOCS = 20
DENSE_BYTES = QUERIES * DOCS * COLUMNS * 4


def text(seed):
    """A few columns say how good a document is, among many that say nothing."""
    draws = random.Random(seed)
    lines = []
    for query in range(QUERIES):
        for _ in range(DOCS):
            grade = draws.randrange(3)
            columns = {1 + draws.randrange(COLUMNS): round(draws.random(), 3) for _ in range(20)}
            columns.update({1000 * sign: grade + draws.randrange(2) for sign in range(1, 4)})
            columns[COLUMNS] = 1
            lines.append(f"{grade} qid:{query} " + " ".join(f"{column}:{columns[column]}" for column in sorted(columns)) + "\n")
    return "".join(lines)


class SparseTest(InFolder):
    def setUp(self):
        super().setUp()
        for seed, part in enumerate(("train", "vali", "test")):
            (self.root / f"{part}.txt").write_text(text(seed))

    def olrank(self, *arguments, code=0):
        """The output of a command that takes little memory, or what it says against it."""
        done, output, said, megabytes, _ = measured(*arguments)
        self.assertEqual(done, code, said)
        self.assertLess(megabytes, DENSE_BYTES / 2 / 2 ** 20, arguments)
        return output if code == 0 else said

    def trained(self, *settings):
        folder = self.root / "-".join(setting.partition("=")[2] for setting in settings)
        self.olrank("train", "--data", self.root, "--cache", self.root / "cache", "--out", folder, "--epochs", 5, *settings)
        return folder

    def test_models_are_trained_evaluated_and_rank(self):
        for settings in (["--network=linear"], ["--network=mlp", "--width=8"]):
            with self.subTest(settings=settings):
                folder = self.trained(*settings)
                told = summary(folder)
                self.assertEqual(told["features"], COLUMNS)
                self.assertGreater(told["test"]["ndcg@10"], 0.75)
                found = json.loads(self.olrank("eval", "--data", self.root, "--model", folder, "--json", "--cache", "none"))
                self.assertAlmostEqual(found["metrics"]["ndcg@10"], told["test"]["ndcg@10"], places=6)
                whole = self.olrank("rank", "--data", self.root, "--model", folder, "--out", "-", "--cache", "none")
                stream = self.olrank("rank", "--data", self.root / "test.txt", "--model", folder, "--out", "-", "--cache", "none")
                self.assertEqual(whole, stream)

    def test_rounds_are_played_by_rankers_that_need_no_zeros(self):
        run = ["run", "--data", self.root, "--cache", self.root / "cache", "--rounds", 200]
        self.olrank(*run, "--ranker", "pdgd,ranknet", "--out", self.root / "run")
        said = self.olrank(*run, "--ranker", "pairrank", "--out", self.root / "refused", code=2)
        self.assertIn("needs dense features, and the data are sparse: choose ranknet,", said)

    def test_what_makes_zeros_other_numbers_is_refused(self):
        said = self.olrank("train", "--data", self.root, "--out", self.root / "z", "--data-normalise", "zscore", code=2)
        self.assertIn("would make each of their zeros another number", said)

    def test_a_value_that_is_no_number_is_refused_with_its_place(self):
        (self.root / "bad.txt").write_text("1 qid:1 3:1 100000:2\n0 qid:1 7:1 100000:nan\n")
        said = self.olrank("eval", "--data", self.root / "bad.txt", "--model", self.root / "none.safetensors", code=1)
        self.assertIn("bad.txt:2:20: The value 'nan' is not finite.", said)


if __name__ == "__main__":
    unittest.main()
