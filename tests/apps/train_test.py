"""`olrank train`: its files, figures that are recomputed here, restarts to the same bits, and what it refuses."""

import json
import math
import signal
import unittest

from command_line import InFolder, curve, has_passes, olrank, succeed, summary, trial_of
from saved_models import read_safetensors

DATA = "synth:small?queries=60&seed=3"


def tensors(trained):
    found, metadata = read_safetensors(trained / "model.safetensors")
    return {name: values for name, (_, values) in found.items()}, metadata


def letor(file):
    queries = {}
    for line in file.read_text().splitlines():
        fields = line.split("#")[0].split()
        row = {int(key): float(value) for key, value in (field.split(":") for field in fields[2:])}
        queries.setdefault(fields[1], []).append((int(fields[0]), row))
    return queries


class Folder(InFolder):
    def train(self, *arguments, out="o", code=0, data=("--data", DATA)):
        done = olrank("train", *data, "--out", self.root / out, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def summary(self, out="o"):
        return summary(self.root / out)


class Training(Folder):
    def test_the_summary_is_what_the_model_and_the_data_say(self):
        self.assertEqual(olrank("data", "synth", DATA, "--out", self.root / "data").returncode, 0)
        self.train("--network", "linear", "--loss", "listnet", "--optimizer", "lbfgs", "--l2", 0.1,
                   data=("--data", self.root / "data", "--data-normalise", "none"))
        values, metadata = tensors(self.root / "o")
        w = values["linear.weight"]
        self.assertEqual(metadata["architecture"], "linear")
        losses, ndcg = [], []
        for part, into in (("train", losses), ("test", ndcg)):
            for docs in letor(self.root / "data" / f"{part}.txt").values():
                grades = [grade for grade, _ in docs]
                scores = [sum(w[key - 1] * value for key, value in row.items()) for _, row in docs]
                if part == "train":
                    total = math.log(sum(map(math.exp, scores)))
                    weights = [math.exp(grade) for grade in grades]
                    into.append(-sum(p * (s - total) for p, s in zip(weights, scores)) / sum(weights))
                    continue
                order = sorted(range(len(docs)), key=lambda i: (-scores[i], i))
                dcg = [sum((2 ** grades[i] - 1) / math.log2(rank + 2) for rank, i in enumerate(ranked[:10]))
                       for ranked in (order, sorted(order, key=lambda i: -grades[i]))]
                into.append(dcg[0] / dcg[1] if dcg[1] > 0 else 0.0)
        objective = sum(losses) / len(losses) + 0.05 * sum(entry * entry for entry in w)
        summary = self.summary()
        self.assertAlmostEqual(summary["loss"], objective, delta=1e-5 * objective)
        self.assertAlmostEqual(summary["test"]["ndcg@10"], sum(ndcg) / len(ndcg), delta=1e-9)
        self.assertEqual([point["epoch"] for point in curve(self.root / "o")], list(range(summary["epochs"] + 1)))

    def test_every_loss_trains_both_networks_and_models_are_used_everywhere(self):
        for loss in ("listnet", "smooth-dcg", "ranksvm", "ranknet", "lambdarank", "listmle", "rankcosine"):
            for network in (["--network", "linear"], ["--network", "mlp", "--width", 8]):
                with self.subTest(loss=loss, network=network):
                    out = f"{loss}-{network[1]}"
                    self.train("--loss", loss, *network, "--epochs", 15, "--batch", 8, out=out)
                    points = curve(self.root / out)
                    self.assertLess(points[-1]["loss"], points[1]["loss"])
                    if loss != "rankcosine":  # starts in a random direction, which may be a good one
                        self.assertGreater(points[-1]["vali"]["ndcg@10"], points[0]["vali"]["ndcg@10"])
        model = self.root / "listnet-mlp"
        told = succeed("eval", "--data", DATA, "--model", model, "--json")
        self.assertAlmostEqual(json.loads(told)["metrics"]["ndcg@10"], self.summary("listnet-mlp")["test"]["ndcg@10"], places=6)
        for command in (["export", model, "--to", "json", "--out", self.root / "m.json"],
                        ["rank", "--model", model, "--data", DATA, "--out", self.root / "m.run"],
                        ["run", "--data", DATA, "--ranker", "olranknet", "--start-from", model, "--rounds", 20, "--seeds", 1,
                         "--clicks", "perfect", "--out", self.root / "warm"]):
            succeed(*command)
        first = curve(trial_of(self.root / "warm", "olranknet"))[0]
        self.assertAlmostEqual(first["offline"]["ndcg@10"], self.summary("listnet-mlp")["test"]["ndcg@10"], places=6)

    def test_folds_and_seeds_have_folders_and_a_summary_of_their_means(self):
        self.train("--network", "mlp", "--width", 8, "--epochs", 3, "--seeds", "1-3")
        whole = self.summary()
        each = [json.loads((self.root / "o" / entry["folder"] / "summary.json").read_text()) for entry in whole["by_model"]]
        self.assertEqual(len(each), 3)
        mean = sum(one["test"]["ndcg@10"] for one in each) / 3
        self.assertAlmostEqual(whole["test"]["ndcg@10"], mean, places=12)
        self.assertGreater(whole["half_width_95"]["ndcg@10"], 0)
        page = (self.root / "o/report.html").read_text()
        self.assertIn("<svg", page)
        self.assertIn("\nloss = &quot;listnet&quot;\n", page)
        self.assertNotIn("\ufffd", page)

    def test_a_killed_training_ends_in_the_same_bits(self):
        settings = ["--data", "synth:mslr-like?queries=60", "--network", "mlp", "--width", 32, "--patience", 100, "--epochs", 100]
        for number, how in ((signal.SIGKILL, -9), (signal.SIGTERM, 143)):
            with self.subTest(signal=number):
                out = self.root / f"killed{number}"
                done = self.signalled(number, has_passes(out), "train", "--quiet", *settings, "--out", out)
                self.assertEqual(done[0], how, done)
                self.assertFalse((out / "summary.json").exists())
                # Fewer passes would be another training.
                refused = olrank("train", *settings[:-1], 30, "--resume", "--out", out)
                self.assertEqual(refused.returncode, 2)
                succeed("train", *settings, "--resume", "--out", out)
        succeed("train", *settings, "--out", self.root / "whole")
        for number in (signal.SIGKILL, signal.SIGTERM):
            self.assertEqual(*(summary(self.root / out)["result_fingerprint"] for out in (f"killed{number}", "whole")))
            self.assertEqual(*(curve(self.root / out) for out in (f"killed{number}", "whole")))


class FromClicks(Folder):
    def test_the_clicks_of_a_log_train_what_grades_train(self):
        log = self.root / "trace.jsonl"
        succeed("run", "--data", DATA, "--ranker", "pdgd", "--clicks", "perfect", "--seeds", 1, "--rounds", 300, "--trace", log,
                "--out", self.root / "run", "--quiet")
        settings = ["--network", "linear", "--epochs", 30, "--log", log]
        random = curve(trial_of(self.root / "run"))[-1]["random"]["offline"]["ndcg@10"]
        models = set()
        for estimator in ("naive", "ips", "dr", "two-tower", "regression-em"):
            self.train(*settings, "--estimator", estimator, "--threads", 1, out=estimator)
            self.assertGreater(self.summary(estimator)["test"]["ndcg@10"], random + 0.1)
            values, metadata = tensors(self.root / estimator)
            self.assertTrue(metadata["learned_from"].startswith(f"clicks by {estimator}, "))
            models.add(tuple(values["linear.weight"]))
        self.assertEqual(len(models), 5)
        self.train(*settings, "--estimator", "dr", "--threads", 3, out="threads")
        self.assertEqual(*(tensors(self.root / out)[0] for out in ("dr", "threads")))
        self.assertEqual(olrank("eval", "--model", self.root / "dr", "--data", DATA).returncode, 0)
        # Another estimator or log is another training.
        done = self.train(*settings, "--estimator", "dr", "--clip", 5, "--resume", out="dr", code=2)
        self.assertIn("clip 10", done.stderr)


if __name__ == "__main__":
    unittest.main()
