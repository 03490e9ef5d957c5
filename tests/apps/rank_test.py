"""Ranked lists of saved models: the same for every form of the data, readable by eval, and exploring lists of trials."""

import gzip
import json
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

from command_line import CommandTest, InFolder, olrank, succeed
from saved_models import write_safetensors


class Rank(InFolder):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.safetensors"
        # f(x) = x1 - 2 x2 on features scaled within each query.
        write_safetensors(self.model, {"linear.weight": ([1, 2], [1.0, -2.0])},
                          {"architecture": "linear", "normalisation": '{"kind":"query-minmax","features":2}'})

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def ranked(self, data, *flags, model=None, warning="", **options):
        out = self.folder / "out"
        done = olrank("rank", "--model", model or self.model, "--data", data, "--out", out, "--cache", "none", *flags,
                      **options)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertTrue(done.stderr.startswith(warning), done.stderr)
        self.assertRegex(done.stderr.removeprefix(warning), rf"^Wrote {out}: (a TREC run|scores) of \d+ documents? in (1 query|\d+ queries)\n$")
        return out.read_text()

    def test_scores_are_the_mean_over_members(self):
        tensors = {"members.0.layers.0.weight": ([1, 1], [2.0]), "members.0.layers.0.bias": ([1], [-1.0]),
                   "members.0.layers.1.weight": ([1, 1], [3.0]), "members.0.layers.1.bias": ([1], [0.5]),
                   "members.1.layers.0.weight": ([1, 1], [-1.0]), "members.1.layers.0.bias": ([1], [4.0]),
                   "members.1.layers.1.weight": ([1, 1], [1.0]), "members.1.layers.1.bias": ([1], [0.0])}
        about = {"architecture": "relu", "width": "1", "depth": "2", "parameterisation": "standard", "members": "2"}
        write_safetensors(self.model, tensors, about)
        data = self.file("d.txt", "0 qid:1 1:0\n0 qid:1 1:1\n0 qid:1 1:10\n")
        # (0.5 + 4) / 2, (3.5 + 3) / 2, (57.5 + 0) / 2
        self.assertEqual(self.ranked(data, "--format", "scores"), "2.25\n3.25\n28.75\n")
        write_safetensors(self.model, tensors, about | {"output_scale": "-2"})
        self.assertEqual(self.ranked(data, "--format", "scores"), "-4.5\n-6.5\n-57.5\n")

    def lines(self, queries=60):
        draw = random.Random(7)
        return [f"{draw.randrange(3)} qid:q{query} 1:{draw.uniform(-5, 5):.6g} 2:{draw.randrange(9)} # docid = d{doc}"
                for query in range(queries) for doc in range(draw.randrange(1, 30))]

    def test_every_form_of_the_data_gives_the_same_lists(self):
        lines = self.lines()
        text = "\n".join(lines) + "\n"
        plain = self.file("plain.txt", text)
        expected = self.ranked(plain)
        self.assertEqual(len(expected.splitlines()), len(lines))
        self.assertEqual(self.ranked(plain, "--threads", "1"), expected)
        self.assertEqual(self.ranked(self.file("crlf.txt", text.replace("\n", "\r\n"))), expected)
        self.assertEqual(self.ranked(self.file("end.txt", text[:-1])), expected)
        self.assertEqual(self.ranked(self.file("text.gz", gzip.compress(text.encode()))), expected)
        self.assertEqual(self.ranked("-", input=text), expected)
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", str(plain)], check=True)
            self.assertEqual(self.ranked(self.folder / "plain.txt.zst"), expected)
        binary = self.folder / "binary.olrank"
        self.assertEqual(olrank("data", "convert", plain, binary).returncode, 0)
        self.assertEqual(self.ranked(binary), expected)
        # Scatters the documents of every query over the file, in their order.
        scattered = sorted(lines, key=lambda line: (int(line.split("docid = d")[1]), line.split("qid:")[1]))
        self.assertNotEqual(scattered, lines)
        given = self.ranked(self.file("scattered.txt", "\n".join(scattered) + "\n"))
        self.assertEqual(sorted(given.splitlines()), sorted(expected.splitlines()))

    def test_uses_a_cached_binary_copy(self):
        plain = self.file("plain.txt", "\n".join(self.lines()) + "\n")
        cache = self.folder / "cache"
        expected = self.ranked(plain)
        self.assertEqual(olrank("eval", "--data", plain, "--model", self.model, "--cache", cache).returncode, 0)
        self.assertEqual(len(list(cache.iterdir())), 1)
        out = self.folder / "served"
        done = olrank("rank", "--model", self.model, "--data", plain, "--out", out, "--cache", cache, "--verbose")
        self.assertIn("binary copy", done.stderr)
        self.assertEqual(out.read_text(), expected)

    def test_eval_reads_the_lists(self):
        data = self.file("d.txt", "\n".join(self.lines()) + "\n")
        run, scores = self.file("run", self.ranked(data)), self.file("scores", self.ranked(data, "--format", "scores"))

        def metrics(*ranking):
            return json.loads(succeed("eval", "--data", data, *ranking, "--json", "--cache", "none"))["metrics"]

        by_model = metrics("--model", self.model)
        self.assertEqual(metrics("--run", run), by_model)
        self.assertEqual(metrics("--scores", scores), by_model)
        self.assertGreater(by_model["pairs"], 0)


class FromTrials(CommandTest):
    SOURCE = "synth:small?queries=40&test_queries=20"

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        config = cls.folder / "c.toml"
        rankers = {"pairrank": 'kind = "pairrank"', "network": 'kind = "olranknet"\nwidth = 8\nlambda = 0.5',
                   "ensemble": 'kind = "p2neurrank"\nwidth = 8', "greedy": 'kind = "ranknet"',
                   "labels": 'kind = "lambdarank-labels"\nwidth = 8'}
        config.write_text(f'[data]\nsource = "{cls.SOURCE}"\n[protocol]\nrounds = 60\neval_every = 30\nseeds = [5]\n'
                          '[clicks]\nmodels = ["navigational"]\n' +
                          "".join(f'[[ranker]]\nname = "{name}"\n{text}\n' for name, text in rankers.items()) +
                          f'[run]\nout = "{cls.folder}/out"\n')
        done = olrank("run", config, "--quiet")
        assert done.returncode == 0, done.stderr
        cls.trials = {name: cls.folder / "out/trials" / name / "navigational/fold1/seed5" for name in rankers}

    def test_eval_matches_the_last_point_of_the_curve(self):
        for name, trial in self.trials.items():
            last = json.loads((trial / "curve.jsonl").read_text().splitlines()[-1])["offline"]["ndcg@10"]
            done = olrank("eval", "--data", self.SOURCE, "--model", trial, "--at", "10", "--json")
            self.assertAlmostEqual(json.loads(done.stdout)["metrics"]["ndcg@10"], last, delta=1e-6, msg=name)


if __name__ == "__main__":
    unittest.main()
