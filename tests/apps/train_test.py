"""`olrank train`: its files, figures that are recomputed here, restarts to the same bits, and what it refuses."""

import json
import math
import pathlib
import signal
import struct
import subprocess
import time
import unittest

from command_line import PROGRAM, InFolder, curve, olrank, succeed

DATA = "synth:small?queries=60&seed=3"


def tensors(file):
    data = file.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    values = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return values, header["__metadata__"]


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
        return json.loads((self.root / out / "summary.json").read_text())


class Training(Folder):
    def test_the_summary_is_what_the_model_and_the_data_say(self):
        self.assertEqual(olrank("data", "synth", DATA, "--out", self.root / "data").returncode, 0)
        self.train("--network", "linear", "--loss", "listnet", "--optimizer", "lbfgs", "--l2", 0.1,
                   data=("--data", self.root / "data", "--data-normalise", "none"))
        values, metadata = tensors(self.root / "o" / "model.safetensors")
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
        first = json.loads((self.root / "warm/trials/olranknet/perfect/fold1/seed1/curve.jsonl").read_text().splitlines()[0])
        self.assertAlmostEqual(first["offline"]["ndcg@10"], self.summary("listnet-mlp")["test"]["ndcg@10"], places=6)

    def test_one_configuration_gives_the_same_bits_again(self):
        settings = ["--network", "mlp", "--width", 8, "--patience", 4, "--epochs", 12, "--batch", 8]
        self.train(*settings, "--threads", 1, out="a")
        self.train(*settings, "--threads", 2, out="b")
        succeed("train", self.root / "a/config.toml", "--out", self.root / "c")
        for other in "bc":
            self.assertEqual(self.summary("a")["result_fingerprint"], self.summary(other)["result_fingerprint"])
            self.assertEqual((self.root / "a/model.safetensors").read_bytes(), (self.root / other / "model.safetensors").read_bytes())
        printed = olrank("train", self.root / "a/config.toml", "--print-config")
        self.assertEqual(printed.stdout, (self.root / "a/config.toml").read_text())

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
                running = subprocess.Popen([PROGRAM, "train", "--quiet", *map(str, settings), "--out", str(out)],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                deadline = time.monotonic() + 60
                while not (out / "curve.jsonl").exists() or len((out / "curve.jsonl").read_text().splitlines()) < 3:
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.02)
                running.send_signal(number)
                self.assertEqual(running.wait(60), how)
                self.assertFalse((out / "summary.json").exists())
                # Fewer passes would be another training.
                refused = olrank("train", *settings[:-1], 30, "--resume", "--out", out)
                self.assertEqual(refused.returncode, 2)
                succeed("train", *settings, "--resume", "--out", out)
        succeed("train", *settings, "--out", self.root / "whole")
        for number in (signal.SIGKILL, signal.SIGTERM):
            self.assertEqual(self.summary(f"killed{number}")["result_fingerprint"], self.summary("whole")["result_fingerprint"])
            self.assertEqual(curve(self.root / f"killed{number}"), curve(self.root / "whole"))


class Weights(Folder):
    """FILE.weight next to the training file has a weight for each document."""

    SETTINGS = ["--network", "linear", "--loss", "listnet", "--optimizer", "lbfgs", "--l2", 0.1, "--data-normalise", "none", "--cache", "none"]

    def setUp(self):
        super().setUp()
        self.assertEqual(olrank("data", "synth", "small?queries=20&seed=3", "--out", self.root / "data").returncode, 0)
        self.queries = {}
        for line in (self.root / "data/train.txt").read_text().splitlines(True):
            self.queries.setdefault(line.split()[1], []).append(line)

    def write(self, name, copies):
        """The training file with so many copies of each query, and the flags that name it."""
        file = self.root / name
        file.write_text("".join(line.replace("qid:", f"qid:{copy}-") for number, lines in enumerate(self.queries.values())
                                for copy in range(copies(number)) for line in lines))
        return file, ("--data-train", file, "--data-test", self.root / "data/test.txt")

    def weigh(self, file, weight):
        pathlib.Path(f"{file}.weight").write_text("".join(f"{weight(number)}\n" for number, lines in enumerate(self.queries.values()) for _ in lines))

    def test_whole_weights_are_copies_of_the_query(self):
        self.train(*self.SETTINGS, data=self.write("copies.txt", lambda number: 1 + number % 3)[1], out="copies")
        file, data = self.write("once.txt", lambda number: 1)
        self.train(*self.SETTINGS, data=data, out="plain")
        self.weigh(file, lambda number: 1.0)
        self.train(*self.SETTINGS, data=data, out="ones")
        self.assertEqual(self.summary("ones")["result_fingerprint"], self.summary("plain")["result_fingerprint"])
        self.weigh(file, lambda number: 1 + number % 3)
        said = self.train(*self.SETTINGS, data=data, out="weights").stderr
        self.assertIn("the training loss weighs queries as the data say", said)
        self.assertAlmostEqual(self.summary("weights")["loss"], self.summary("copies")["loss"], delta=1e-6)
        one, other, plain = (tensors(self.root / out / "model.safetensors")[0]["linear.weight"] for out in ("weights", "copies", "plain"))
        for a, b in zip(one, other):
            self.assertAlmostEqual(a, b, delta=1e-3)
        self.assertGreater(max(abs(a - b) for a, b in zip(one, plain)), 0.02)

    def test_other_weights_are_another_training(self):
        file, data = self.write("once.txt", lambda number: 1)
        self.weigh(file, lambda number: 1 + number % 2)
        self.train(*self.SETTINGS, data=data)
        self.train(*self.SETTINGS, "--resume", data=data)
        self.weigh(file, lambda number: 2 + number % 2)
        self.train(*self.SETTINGS, "--resume", data=data, code=2)
        self.weigh(file, lambda number: number - 3)
        said = self.train(*self.SETTINGS, "--force", data=data, code=1).stderr
        self.assertIn(f"{file}.weight:1: A weight must be a finite number of at least 0, not '-3'.", said)

    def test_online_rankers_do_not_use_them(self):
        file, data = self.write("once.txt", lambda number: 1)
        play = ["run", *map(str, data), "--ranker", "pdgd,lambdarank-labels", "--clicks", "perfect", "--rounds", 20, "--seeds", 1, "--cache", "none", "--out"]
        pathlib.Path(f"{file}.weight").write_text("of another program\n")
        succeed(*play, self.root / "weights")
        pathlib.Path(f"{file}.weight").unlink()
        olrank(*play, self.root / "plain")
        curves = [[json.loads(line)["offline"] for file in sorted((self.root / out).rglob("curve.jsonl")) for line in file.read_text().splitlines()]
                  for out in ("weights", "plain")]
        self.assertEqual(*curves)


class FromClicks(Folder):
    def test_the_clicks_of_a_log_train_what_grades_train(self):
        log = self.root / "trace.jsonl"
        succeed("run", "--data", DATA, "--ranker", "pdgd", "--clicks", "perfect", "--seeds", 1, "--rounds", 300, "--trace", log,
                "--out", self.root / "run", "--quiet")
        settings = ["--network", "linear", "--epochs", 30, "--log", log]
        random = curve(self.root / "run/trials/pdgd/perfect/fold1/seed1")[-1]["random"]["offline"]["ndcg@10"]
        models = set()
        for estimator in ("naive", "ips", "dr", "two-tower", "regression-em"):
            self.train(*settings, "--estimator", estimator, "--threads", 1, out=estimator)
            self.assertGreater(self.summary(estimator)["test"]["ndcg@10"], random + 0.1)
            values, metadata = tensors(self.root / estimator / "model.safetensors")
            self.assertTrue(metadata["learned_from"].startswith(f"clicks by {estimator}, "))
            models.add(values["linear.weight"])
        self.assertEqual(len(models), 5)
        self.train(*settings, "--estimator", "dr", "--threads", 3, out="threads")
        self.assertEqual(*(tensors(self.root / out / "model.safetensors")[0] for out in ("dr", "threads")))
        self.assertEqual(olrank("eval", "--model", self.root / "dr", "--data", DATA).returncode, 0)
        # Another estimator or log is another training.
        done = self.train(*settings, "--estimator", "dr", "--clip", 5, "--resume", out="dr", code=2)
        self.assertIn("clip 10", done.stderr)


if __name__ == "__main__":
    unittest.main()
