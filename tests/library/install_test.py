"""The installed package is all that a program needs: public headers compile alone and show no type of a library that olrank
uses, except LibTorch's in module.h; the examples build against the package and learn."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["OLRANK_BUILD"]
EXAMPLES = pathlib.Path("examples")


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


class InstalledPackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="olrank-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr

    def test_public_headers_compile_alone(self):
        headers = sorted((self.prefix / "include" / "olrank").glob("*.h"))
        self.assertEqual([header.name for header in headers], ["c_api.h", "data.h", "error.h", "evaluation.h", "experiment.h", "external_metric.h",
                                                             "external_model.h", "external_ranker.h", "external_user.h", "logs.h", "model.h", "module.h",
                                                             "module_request.h", "program.h", "ranker.h", "settings.h"])
        self.assertEqual([path.name for path in (self.prefix / "include").iterdir()], ["olrank"])
        for header in headers:
            if header.name == "module.h":  # the example of a module includes it
                self.assertIsNone(re.search(r"nlohmann|json|fmt::|\"core/|\"models/", header.read_text()))
                continue
            run("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", self.prefix / "include", "-include",
                header, "-x", "c++", "/dev/null")
            self.assertIsNone(re.search(r"torch|nlohmann|\bjson\b|fmt::|\"core/|\"models/", header.read_text()), header)

    def test_only_the_public_names_are_exported(self):
        library = next((self.prefix / "lib").rglob("libolrank.so"))
        names = run("nm", "-DC", "--defined-only", library)
        for public in ("olrank::Ranker::rank(", "olrank::register_factory(", "olrank::register_ranker(", "olrank::register_user(",
                       "olrank::UserCoins::uniform(", "olrank::RankingData::load(", "olrank::play_experiment(", " olrank_ranker_rank\n"):
            self.assertIn(public, names)
        for hidden in ("nlohmann", "olrank::PairRank", "olrank::registered_", "olrank_note_signal", "fmt::"):
            self.assertNotIn(hidden, names)
        # Neither the command line nor recommenders nor studies are inside, not even hidden.
        everything = run("nm", "-C", library)
        self.assertIn("olrank::resolve_configuration(", everything)
        for absent in ("olrank::run_program(", "olrank::make_run_command(", "olrank::Mter", "olrank::find_generalisation("):
            self.assertNotIn(absent, everything)
        program = next((self.prefix / "lib").rglob("libolrank_program.so"))
        names = run("nm", "-DC", "--defined-only", program)
        for public in ("olrank::run_program(", "olrank::Ranker::rank(", "olrank::register_ranker("):
            self.assertIn(public, names)

    def build_example(self, name):
        copy = self.folder / name
        shutil.copytree(EXAMPLES / name, copy)
        run("cmake", "-S", copy, "-B", copy / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", copy / "build")
        return copy / "build" / name.replace("-", "_")

    def test_a_program_brings_a_module(self):
        program = self.build_example("own-module")
        out = self.folder / "product"
        run(program, "run", "--data", "synth:small?queries=100", "--ranker", "olranknet", "--network", "module", "--module", "product",
            "--width", "8", "--rounds", "60", "--clicks", "perfect", "--seeds", "1", "--out", out, "--quiet")
        model = next(out.rglob("model.safetensors"))
        data = ["--data", "synth:small?queries=100"]
        self.assertIn("ndcg", run(program, "eval", "--model", model, *data))
        # The program without the module says what is missing.
        other = subprocess.run([self.prefix / "bin" / "olrank", "eval", "--model", model, *data], capture_output=True, text=True)
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("'product'", other.stderr)
        self.assertEqual(len(other.stderr.splitlines()), 1, other.stderr)

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is missing")
    def test_pkg_config_names_what_a_build_needs(self):
        folder = next(self.prefix.rglob("olrank.pc")).parent
        flags = run("env", f"PKG_CONFIG_PATH={folder}", "pkg-config", "--cflags", "--libs", "olrank").split()
        program = self.folder / "click_loop"
        run("c++", "-std=c++20", "-O2", EXAMPLES / "click-loop/click_loop.cpp", *flags, "-o", program)
        self.assertIn("clicks a list", run(program, cwd=self.folder))
        # In C, with a compiler and a linker that know no C++.
        run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", EXAMPLES / "click-loop/click_loop.c", *flags, "-o", program)
        clicks = [int(found) for found in re.findall(r"(\d+) clicks in", run(program, cwd=self.folder))]
        self.assertEqual(len(clicks), 4)
        self.assertGreater(clicks[3] - clicks[2], 1.2 * clicks[0])

    def test_a_program_brings_a_user_and_a_ranker(self):
        program = self.build_example("own-ranker")
        out = self.folder / "own"
        run(program, "run", EXAMPLES / "own-ranker/own.toml", "--seeds", "1", "--out", out, "--quiet")
        for user in ("navigational", "careful"):
            last = json.loads((out / "trials/mine" / user / "fold1/seed1/summary.json").read_text())["last"]["offline"]["ndcg@10"]
            first = json.loads((out / "trials/mine" / user / "fold1/seed1/curve.jsonl").read_text().splitlines()[0])["offline"]["ndcg@10"]
            self.assertGreater(last, first + 0.05, user)

    def test_the_example_builds_and_learns(self):
        program = self.build_example("click-loop")
        output = run(program, cwd=self.folder)
        clicks = [float(found) for found in re.findall(r"([0-9.]+) clicks a list", output)]
        self.assertEqual(len(clicks), 4, output)
        self.assertGreater(clicks[-1], 1.2 * clicks[0], output)
        certain = [int(found) for found in re.findall(r"([0-9]+) % of the shown orders", output)]
        self.assertGreater(certain[-1], certain[0], output)
        # The program of the same package reads the model.
        table = run(self.prefix / "bin" / "olrank", "export", self.folder / "click_loop.safetensors", "--to", "json", "--out",
                    self.folder / "model.json")
        self.assertTrue((self.folder / "model.json").exists(), table)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
