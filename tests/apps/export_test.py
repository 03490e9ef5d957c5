"""Every export format, read by other tools, gives the same scores as the program."""

import ctypes
import functools
import importlib.util
import json
import pathlib
import pickle
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile

from command_line import CommandTest, olrank, succeed
from saved_models import layers_of, model_scores, read_queries, read_safetensors, write_safetensors

# Scores are printed exactly and computed in double, so only the order of summation differs.
TOLERANCE = 1e-6

RANKERS = {
    "linear": ["--ranker", "pairrank", "--data-normalise", "zscore"],
    "ntk": ["--ranker", "olranknet", "--width", "8"],
    "deep": ["--ranker", "olranknet", "--width", "6", "--depth", "3", "--data-normalise", "log1p-zscore"],
    "standard": ["--ranker", "ranknet", "--width", "7", "--parameterisation", "standard", "--network", "mlp",
                 "--data-normalise", "none"],
    "ensemble": ["--ranker", "p2neurrank", "--width", "4", "--depth", "3", "--members", "3", "--data-normalise", "zscore"],
    "linear-ensemble": ["--ranker", "p2linrank", "--members", "2", "--data-normalise", "zscore"],
}
# Modules with layers that every format but json has.
MODULES = {
    "module-relu": ["--ranker", "olranknet", "--network", "module", "--module", "relu", "--width", "6", "--depth", "3"],
    "module-residual": ["--ranker", "p2neurrank", "--network", "module", "--module", "residual", "--width", "5", "--depth", "3",
                        "--parameterisation", "standard", "--members", "2"],
}
# Search engines can score these, one document at a time.
ENGINES = ("linear", "standard", "ensemble", "linear-ensemble")
# Additive models, each with the normalisation of another model.
ADDITIVE = {f"additive-{name}": name for name in ("linear", "ntk", "deep", "standard")} | {"products": "ntk"}


def cosines_of(name):
    return 3 if name in ADDITIVE else 0


def products_of(name):
    return [[3, 0], [1, 2], [4, 4]] if name == "products" else []


def has(*packages):
    return all(importlib.util.find_spec(package) for package in packages)


class Forms(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data = cls.make_data()
        cls.models = {}
        for name, flags in (RANKERS | MODULES).items():
            out = cls.folder / name
            succeed("run", "--data-train", cls.data / "train.txt", "--data-test", cls.data / "test.txt", *flags, "--rounds", "40",
                    "--protocol-eval-every", "40", "--seeds", "3", "--clicks", "perfect", "--data-cache", "none", "--data-drop-constant", "true",
                    "--out", out)
            cls.models[name] = next(out.glob("trials/*/perfect/fold1/seed3/model.safetensors"))
        draw = random.Random(5)
        for name, other in ADDITIVE.items():
            about = {key: text for key, text in read_safetensors(cls.models[other])[1].items() if key != "output_scale"}
            normalisation = json.loads(about["normalisation"])
            columns = len(normalisation.get("kept", range(normalisation["features"])))
            tensors = {key: ([rows, columns], [draw.gauss(0, 1) for _ in range(rows * columns)])
                       for key, rows in (("linear.weight", 1), ("cosines.weight", 3))}
            cls.models[name] = cls.folder / f"{name}.safetensors"
            if products_of(name):
                about["products"] = json.dumps(products_of(name))
                tensors["products.weight"] = ([1, len(products_of(name))], [draw.gauss(0, 1) for _ in products_of(name)])
            write_safetensors(cls.models[name], tensors, about | {"architecture": "additive"})

    @classmethod
    def make_data(cls):
        """Synthetic data with a constant first feature, a feature that varies in few queries, and negative values."""
        made = cls.folder / "made"
        succeed("data", "synth", "small?queries=30&test_queries=8", "--out", made)
        for part in ("train", "test"):
            lines = []
            for number, line in enumerate((made / f"{part}.txt").read_text().splitlines()):
                grade, qid, *features = line.split("#")[0].split()
                rest = [f"{int(f.split(':')[0]) + 2}:{f.split(':')[1]}" for f in features]
                varied = -0.5 * (number % 5) if number % 60 < 20 else 3
                lines.append(" ".join([grade, qid, "1:2.5", f"2:{varied}", *rest]))
            (made / f"{part}.txt").write_text("\n".join(lines) + "\n")
        return made

    @classmethod
    @functools.cache
    def program_scores(cls, model):
        out = cls.folder / "scores"
        done = olrank("rank", "--model", model, "--data", cls.data / "test.txt", "--format", "scores", "--out", out,
                      "--cache", "none")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return [float(line) for line in out.read_text().split()]

    @classmethod
    @functools.cache
    def exported(cls, name, form, file=None, *flags):
        out = cls.folder / (file or f"{name}.{form}")
        done = olrank("export", cls.models[name], "--to", form, "--out", out, *flags)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"Wrote {out}: the model in the format {form}\n"), done
        return out

    def queries(self, metadata):
        return read_queries(self.data / "test.txt", json.loads(metadata["normalisation"])["features"])

    def expect_scores(self, scores, name):
        expected = self.program_scores(self.models[name])
        self.assertEqual(len(scores), len(expected), name)
        self.assertGreater(max(expected) - min(expected), 1e-3, name)  # the model is not trivial
        for ours, theirs in zip(expected, scores):
            self.assertLessEqual(abs(ours - theirs), TOLERANCE, name)

    def test_safetensors_matches_the_formula(self):
        for name in RANKERS | ADDITIVE:
            tensors, metadata = read_safetensors(self.exported(name, "safetensors"))
            scores = model_scores(layers_of(tensors, metadata), float(metadata.get("output_scale", 1)),
                                  json.loads(metadata["normalisation"]), self.queries(metadata), cosines_of(name), products_of(name))
            self.expect_scores(scores, name)

    def test_safetensors_metadata_describe_the_trial(self):
        for name in RANKERS:
            metadata = read_safetensors(self.models[name])[1]
            features = json.loads(metadata["normalisation"])["features"]
            self.assertEqual(json.loads(metadata["feature_names"]), [f"f{f}" for f in range(1, features + 1)])
            self.assertEqual((metadata["seed"], metadata["fold"], metadata["clicks"], metadata["rounds"]),
                             ("3", "1", "perfect", "40"))
            self.assertEqual(metadata["producer"], " ".join(olrank("--version").stdout.split()[:2]))
            self.assertIn('name = "recommended"', metadata["protocol"])
            self.assertIn(f'kind = "{metadata["ranker"]}"', metadata["ranker_settings"])
            self.assertRegex(metadata["data_fingerprint"], "^[0-9a-f]{32} [0-9a-f]{32} grades 0-")
            self.assertEqual(self.exported(name, "safetensors").read_bytes(), self.models[name].read_bytes())

    @unittest.skipUnless(has("safetensors", "numpy"), "Python's safetensors or numpy is missing")
    def test_safetensors_library_reads_models(self):
        from safetensors import safe_open
        for name in RANKERS | ADDITIVE:
            file = self.exported(name, "safetensors")
            tensors, metadata = read_safetensors(file)
            with safe_open(file, "np") as opened:
                self.assertEqual({key: text for key, text in opened.metadata().items() if key != "olrank_checksum"}, metadata)
                self.assertEqual(set(opened.keys()), set(tensors))
                for key, (shape, values) in tensors.items():
                    self.assertEqual(list(opened.get_tensor(key).shape), shape)
                    self.assertEqual(opened.get_tensor(key).ravel().tolist(), values)

    def test_json_gives_the_scores(self):
        for name in RANKERS | ADDITIVE:
            model = json.loads(self.exported(name, "json").read_text())
            members = [[(layer["weight"], layer.get("bias", [0.0] * len(layer["weight"]))) for layer in member["layers"]]
                       for member in model["members"]]
            self.assertEqual(len(model["feature_names"]), model["normalisation"]["features"])
            self.assertEqual((model.get("cosines", 0), model.get("products", [])), (cosines_of(name), products_of(name)))
            self.assertEqual(model["metadata"]["seed"], "3")
            queries = read_queries(self.data / "test.txt", model["normalisation"]["features"])
            self.expect_scores(model_scores(members, model["output_scale"], model["normalisation"], queries, cosines_of(name), products_of(name)),
                               name)

    def test_pt_contains_the_tensors(self):
        """Reads the archive with Python's zip and pickle, and stand-ins for torch's names. Their values are those of the model file."""
        class Loader(pickle.Unpickler):
            def find_class(self, module, name):
                if (module, name) == ("collections", "OrderedDict"):
                    return super().find_class(module, name)
                return {("torch._utils", "_rebuild_tensor_v2"): lambda storage, offset, shape, stride, grad, hooks:
                        (storage, offset, shape, stride, grad),
                        ("torch", "FloatStorage"): "float"}[module, name]

            def persistent_load(self, what):
                return what

        for name in RANKERS | MODULES | ADDITIVE:
            tensors, metadata = read_safetensors(self.models[name])
            if has("torch"):
                import torch
                self.assertEqual(list(torch.load(self.exported(name, "pt"), weights_only=True)), list(tensors))
            with zipfile.ZipFile(self.exported(name, "pt")) as archive:
                self.assertIsNone(archive.testzip())
                self.assertTrue(all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist()))
                with archive.open("model/data.pkl") as file:
                    state = Loader(file).load()
                self.assertEqual(state.olrank, metadata)
                self.assertEqual(list(state), list(tensors))
                for key, (storage, offset, shape, stride, _) in state.items():
                    self.assertEqual((storage[:2], storage[3], offset), (("storage", "float"), "cpu", 0))
                    self.assertEqual((list(shape), storage[4]), (tensors[key][0], len(tensors[key][1])))
                    self.assertEqual(stride, (shape[1], 1) if len(shape) == 2 else (1,))
                    content = archive.read(f"model/data/{storage[2]}")
                    self.assertEqual(struct.unpack(f"<{storage[4]}f", content), tuple(tensors[key][1]))

    def test_torchscript_holds_code_tensors_and_metadata(self):
        """The tests of models/export and models/modules load such archives and compare the scores."""
        for name in RANKERS | MODULES | ADDITIVE:
            tensors, metadata = read_safetensors(self.models[name])
            with zipfile.ZipFile(self.exported(name, "torchscript")) as archive:
                self.assertIsNone(archive.testzip())
                files = {entry.partition("/")[2]: archive.read(entry) for entry in archive.namelist()}
            self.assertEqual(json.loads(files["extra/olrank.json"]), metadata)
            self.assertIn(b"def forward(self", files["code/__torch__/olrank.py"])
            stored = sorted(len(content) for entry, content in files.items() if re.fullmatch(r"data/\d+", entry))
            for _, values in tensors.values():
                self.assertIn(4 * len(values), stored)

    @unittest.skipUnless(has("onnx", "onnxruntime", "numpy"), "Python's onnx, onnxruntime or numpy is missing")
    def test_onnx_gives_the_scores(self):
        import numpy
        import onnx
        import onnxruntime
        for name in RANKERS | MODULES | ADDITIVE:
            file = self.exported(name, "onnx")
            onnx.checker.check_model(str(file), full_check=True)
            session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
            metadata = session.get_modelmeta().custom_metadata_map
            self.assertEqual(metadata, read_safetensors(self.models[name])[1])
            scores = []
            for docs in self.queries(metadata):
                given = session.run(["scores"], {"docs": numpy.array(docs, dtype=numpy.float32)})[0]
                self.assertEqual(given.shape, (len(docs),))
                scores += given.tolist()
            self.expect_scores(scores, name)

    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler cc")
    def test_c_gives_the_scores(self):
        for name in RANKERS | MODULES | ADDITIVE:
            source = self.exported(name, "c", f"my-{name}.c")
            library = source.with_suffix(".so")
            done = subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-ffp-contract=off",
                                   "-shared", "-fPIC", "-o", library, source, "-lm"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertNotIn("format: pt", source.read_text())  # which the model file is, not this one
            functions = ctypes.CDLL(str(library))
            stem = source.stem.replace("-", "_")
            normalise, score = functions[f"{stem}_normalise"], functions[f"{stem}_score"]
            score.restype = ctypes.c_double
            metadata = read_safetensors(self.models[name])[1]
            normalisation = json.loads(metadata["normalisation"])
            columns = len(normalisation.get("kept", range(normalisation["features"]))) * (1 + cosines_of(name)) + len(products_of(name))
            scores = []
            for docs in self.queries(metadata):
                raw = (ctypes.c_float * (len(docs) * normalisation["features"]))(*(x for doc in docs for x in doc))
                inputs = (ctypes.c_float * (len(docs) * columns))()
                normalise(raw, ctypes.c_size_t(len(docs)), inputs)
                for doc in range(len(docs)):
                    scores.append(score(ctypes.byref(inputs, 4 * columns * doc)))
            self.expect_scores(scores, name)

    def test_search_engines_get_the_scores(self):
        """As the engines document it, but in double: features without a log entry are 0, then the normaliser, then the model."""
        def scores_of(model, named):
            self.expect_scores([model(dict(zip(names, doc))) for docs in self.queries(metadata) for doc in docs], named)

        for name in ENGINES:
            metadata = read_safetensors(self.models[name])[1]
            names = [f'the "{n}"' for n in range(json.loads(metadata["normalisation"])["features"])]
            flags = ("--feature-names", ",".join(names))
            solr = json.loads(self.exported(name, "solr", f"{name}-solr.json", *flags).read_text())
            is_linear = metadata["architecture"] == "linear"
            self.assertEqual(solr["name"], f"{name}-solr".replace("-", "_"))
            self.assertEqual(solr["class"], f"org.apache.solr.ltr.model.{'LinearModel' if is_linear else 'NeuralNetworkModel'}")

            def of_solr(doc):
                x = []
                for feature in solr["features"]:
                    norm = feature.get("norm", {"class": "org.apache.solr.ltr.norm.StandardNormalizer",
                                                "params": {"avg": "0", "std": "1"}})
                    self.assertEqual(norm["class"], "org.apache.solr.ltr.norm.StandardNormalizer")
                    x.append((doc[feature["name"]] - float(norm["params"]["avg"])) / float(norm["params"]["std"]))
                if is_linear:
                    self.assertEqual(set(solr["params"]["weights"]), {feature["name"] for feature in solr["features"]})
                    return sum(solr["params"]["weights"][feature["name"]] * v for feature, v in zip(solr["features"], x))
                for layer in solr["params"]["layers"]:
                    # Solr casts them to Double, which an integer is not.
                    self.assertTrue(all(isinstance(w, float) for row in [*layer["matrix"], layer["bias"]] for w in row))
                    x = [b + sum(w * v for w, v in zip(row, x, strict=True))
                         for row, b in zip(layer["matrix"], layer["bias"], strict=True)]
                    x = {"relu": [max(0.0, v) for v in x], "identity": x}[layer["activation"]]
                self.assertEqual(len(x), 1)
                return x[0]

            scores_of(of_solr, name)
            if not is_linear:
                self.refused(2, "A network cannot be written as ltr", "export", self.models[name], "--to", "ltr", "--out",
                             self.folder / "none")
                continue
            ltr = json.loads(self.exported(name, "ltr", f"{name}-ltr.json", *flags).read_text())["model"]
            self.assertEqual((ltr["name"], ltr["model"]["type"]), (f"{name}-ltr".replace("-", "_"), "model/linear"))
            weights, norms = json.loads(ltr["model"]["definition"]), ltr["model"].get("feature_normalizers", {})

            def of_ltr(doc):
                standard = {feature: norms.get(feature, {"standard": {"mean": 0.0, "standard_deviation": 1.0}})["standard"]
                            for feature in weights}
                return sum(weight * (doc[feature] - standard[feature]["mean"]) / standard[feature]["standard_deviation"]
                           for feature, weight in weights.items())

            scores_of(of_ltr, name)

    def test_search_engines_take_no_scaling_within_a_query(self):
        for name, sentence in (("ntk", "it scales features within their query"), ("deep", "search engines take no logarithms"),
                               ("additive-linear", "it scales features within their query"),
                               ("module-residual", "Module 'residual' cannot be written as solr")):
            self.refused(2, sentence, "export", self.models[name], "--to", "solr", "--out", self.folder / "none")
        self.assertFalse((self.folder / "none").exists())


if __name__ == "__main__":
    unittest.main()
