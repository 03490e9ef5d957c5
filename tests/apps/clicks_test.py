"""`olrank clicks fit`: what it finds in logs of known users, what it says of logs that cannot tell, and that other commands take what it
prints; commands/data.test has bad input."""

import json
import pathlib
import random
import tempfile
import unittest

from command_line import CommandTest, olrank, succeed

LOOKS = (1.0, 0.7, 0.5, 0.35, 0.25)
QUERIES, DOCS = 8, 9


def attraction(query, doc):
    return 0.1 + 0.8 * ((7 * query + 5 * doc) % DOCS) / DOCS


def position_based_lists(count, shuffled=True):
    draws = random.Random(11)
    for number in range(count):
        query, docs = draws.randrange(QUERIES), list(range(DOCS))
        if shuffled:
            draws.shuffle(docs)
        shown = docs[: len(LOOKS)]
        clicks = [int(draws.random() < look * attraction(query, doc)) for look, doc in zip(LOOKS, shown, strict=True)]
        yield {"impression": f"list {number}", "qid": f"q{query}", "shown": [f"d{doc}" for doc in shown], "clicks": clicks}


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class ClicksFit(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.lists = list(position_based_lists(12_000))
        cls.log = write(cls.folder / "log.jsonl", cls.lists)

    def fit(self, log, *arguments, code=0):
        done = olrank("clicks", "fit", "--log", log, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def told(self, log, *arguments):
        report = json.loads(self.fit(log, "--json", *arguments))
        return report, {model["name"]: model for model in report["models"]}

    def test_finds_how_users_read(self):
        report, models = self.told(self.log)
        self.assertEqual(list(models), ["rank-only", "pbm", "cascade", "dcm", "dbn", "ubm"])
        clicks = sum(sum(line["clicks"]) for line in self.lists)
        self.assertEqual((report["lists"], report["documents"], report["clicks"]), (12_000, QUERIES * DOCS, clicks))
        self.assertAlmostEqual(report["held_out"] / 12_000, 0.2, delta=0.02)  # five standard deviations
        self.assertIn(report["best"], ("pbm", "ubm"))  # the second has the first as a special case
        # 9,600 lists: a share of .2 of them has a standard error of .004, which 1/attraction = 2 doubles.
        for found, look in zip(models["pbm"]["examination"], LOOKS, strict=True):
            self.assertAlmostEqual(found, look, delta=0.04)
        for name in ("pbm", "ubm"):
            self.assertLess(models[name]["perplexity"], models["rank-only"]["perplexity"] - 0.05)
            self.assertGreater(models[name]["log_likelihood"], models["rank-only"]["log_likelihood"] + 0.1)
        lengths = [len(models[name][key]) for name, key in (("pbm", "perplexity_by_rank"), ("ubm", "by_last_click"), ("dcm", "continuation"))]
        self.assertEqual(lengths, [5, 15, 4])
        self.assertTrue(0 < models["dbn"]["perseverance"] < 1)
        identification = report["identification"]
        self.assertEqual((identification["identified"], identification["moved"], identification["groups"]), (True, QUERIES * DOCS, [[1, 2, 3, 4, 5]]))
        for name in ("pbm", "cascade", "dcm", "dbn", "ubm"):
            clicks = models[name]["user"]["click"]
            self.assertEqual((clicks, len(clicks)), (sorted(clicks), 5))
        # The mean attraction of each fifth of the documents, all of which were shown equally often.
        truth = sorted(attraction(query, doc) for query in range(QUERIES) for doc in range(DOCS))
        fifth = len(truth) // 5
        for part, found in enumerate(models["pbm"]["user"]["click"]):
            self.assertAlmostEqual(found, sum(truth[part * fifth : (part + 1) * fifth]) / fifth, delta=0.06)

    def test_impressions_decide_what_is_held_out(self):
        shuffled = self.lists[:]
        random.Random(1).shuffle(shuffled)
        one, _ = self.told(self.log, "--model", "cascade")
        other, _ = self.told(write(self.folder / "shuffled.jsonl", shuffled), "--model", "cascade")
        self.assertEqual(one["clicks_by_rank"], other["clicks_by_rank"])
        self.assertEqual(one["held_out"], other["held_out"])
        third, _ = self.told(self.log, "--model", "cascade", "--holdout", 0.5)
        self.assertAlmostEqual(third["held_out"] / 12_000, 0.5, delta=0.025)

    def test_says_when_examination_is_not_identified(self):
        fixed = list(position_based_lists(500, shuffled=False))
        self.assertIn("Examination is not identified: none of the 40 documents", self.fit(write(self.folder / "fixed.jsonl", fixed)))
        # The first two and the next two ranks change places, the last one with none.
        for line in fixed[::2]:
            line["shown"] = [line["shown"][rank] for rank in (1, 0, 3, 2, 4)]
        found = self.told(write(self.folder / "halves.jsonl", fixed))[0]["identification"]
        self.assertEqual((found["identified"], found["groups"]), (False, [[1, 2], [3, 4], [5]]))
        self.assertIn("only within 3 groups, (1 to 2), (3 to 4), (5)", found["sentence"])

    def test_other_commands_take_what_it_prints(self):
        trace = self.folder / "trace.jsonl"
        run = ["run", "--data", "synth:small?queries=20", "--seeds", 1, "--quiet", "--protocol-cutoff", 5]
        succeed(*run, "--ranker", "pdgd", "--clicks", "navigational", "--rounds", 800, "--trace", trace, "--out", self.folder / "logged")
        for model in ("pbm", "cascade", "dcm", "dbn", "ubm"):
            with self.subTest(model=model):
                text = self.fit(trace, "--model", model)
                user = text[text.index("[[user]]"):]
                config = self.folder / f"{model}.toml"
                config.write_text(f'[clicks]\nmodels = ["fitted-{model}"]\n\n{user}')
                succeed("run", config, *run[1:], "--ranker", "pairrank", "--rounds", 20, "--out", self.folder / f"by-{model}")
                looks = next(line for line in text.splitlines() if line.startswith("--groups "))
                values = json.loads(looks.removeprefix("--groups examination="))
                self.assertEqual(len(values), 5)
                self.assertEqual(values[0], 1)

    def test_inputs_of_documents_make_a_two_tower_model(self):
        draws = random.Random(5)
        inputs = {(query, doc): [attraction(query, doc), draws.random()] for query in range(QUERIES) for doc in range(DOCS)}
        lists = [{**line, "inputs": [inputs[int(line["qid"][1:]), int(doc[1:])] for doc in line["shown"]]} for line in self.lists]
        log = write(self.folder / "inputs.jsonl", lists)
        _, models = self.told(log)
        self.assertIn("two-tower", models)
        for found, look in zip(models["two-tower"]["examination"], LOOKS, strict=True):
            self.assertAlmostEqual(found, look, delta=0.04)
        self.assertEqual(len(models["trust"]["trust"]), len(LOOKS))
        text = self.fit(log, "--model", "trust")
        self.assertIn("no simulated user has trust:", " ".join(text.split()))
        self.assertTrue("--groups examination=[" in text and "[[user]]" not in text)
        _, alone = self.told(log, "--model", "two-tower")
        self.assertEqual(alone["two-tower"], models["two-tower"])
        del lists[-1]["inputs"]
        partly = write(self.folder / "partly.jsonl", lists)
        self.assertNotIn("two-tower", self.told(partly)[1])
        self.assertIn("two-tower and trust are left out", self.fit(partly))
        self.assertIn("--model two-tower needs inputs of documents", self.fit(partly, "--model", "two-tower", code=2))

    def test_later_ranks_can_be_left_out(self):
        report, models = self.told(self.log, "--at", 3, "--model", "pbm")
        self.assertEqual(report["longer_lists"], 12_000)
        self.assertEqual(len(models["pbm"]["examination"]), 3)
        self.assertIn("12000 lists are longer than --at", self.fit(self.log, "--at", 3))


if __name__ == "__main__":
    unittest.main()
