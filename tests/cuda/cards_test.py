"""`olrank run --device` on several emulated GPUs: the same bits wherever a trial is played, and what is refused."""

import collections
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = pathlib.Path(os.environ["OLRANK_BUILD"], "bin", "tests", "emulated_olrank")
DATA = "synth:small?queries=30&test_queries=10&seed=3"
RANKERS = ["--ranker", "olranknet,p2neurrank,pairrank", "--set", "ranker.p2neurrank.members=2", "--width", 4, "--steps", 2,
           "--rounds", 6, "--protocol-eval-every", 3, "--seeds", "1-2", "--clicks", "perfect"]
LARGE_EPOCHS = 100000  # early stopping ends it after two passes
THREE = "Card=8GB,Card=8GB,Card=8GB"


class Cards(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def olrank(self, *arguments, cards=THREE, **variables):
        environment = {**os.environ, "OLRANK_EMULATED_GPUS": cards, **variables}
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=900, env=environment)

    def run_on(self, device, name, *arguments, **variables):
        """Fingerprints by trial, and how many networks each GPU made."""
        log = self.root / f"{name}.log"
        done = self.olrank("run", "--quiet", "--data", DATA, "--device", device, "--out", self.root / name, *RANKERS, *arguments,
                           OLRANK_EMULATED_LOG=str(log), **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        summaries = sorted((self.root / name).glob("trials/*/*/*/*/summary.json"))
        found = {str(path.parent.relative_to(self.root / name)): json.loads(path.read_text())["result_fingerprint"] for path in summaries}
        self.assertEqual(len(found), 6)
        return found, collections.Counter(log.read_text().split())

    def refusal(self, *arguments, **options):
        done = self.olrank("run", "--data", DATA, "--out", self.root / "refused", *arguments, **options)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse((self.root / "refused").exists())
        return done.stderr

    def test_trials_have_the_same_bits_on_one_card_and_on_several(self):
        one, made = self.run_on("cuda:0", "one")
        self.assertEqual(made, {"cuda:0": 4})  # pairrank runs on the CPU
        for device, jobs, schedule, cards in (
            ("cuda:all", 4, "forward", {"cuda:0", "cuda:1", "cuda:2"}),
            ("cuda:1-2", 1, "backward", {"cuda:1", "cuda:2"}),
            ("cuda:2,0", 3, "random", {"cuda:0", "cuda:2"}),
            ("cuda:1", 4, "random", {"cuda:1"}),  # in one batch
        ):
            with self.subTest(device=device):
                found, made = self.run_on(device, device, "--jobs", jobs, OLRANK_EMULATED_SCHEDULE=schedule)
                self.assertEqual(found, one)
                # Which card plays a trial is chance, as trials end; most cards get one.
                self.assertLessEqual(set(made), cards)
                self.assertGreater(len(made), min(1, len(cards) - 1))
                self.assertEqual((self.root / device / "summary.csv").read_bytes(), (self.root / "one" / "summary.csv").read_bytes())
        manifest = json.loads((self.root / "cuda:2,0" / "manifest.json").read_text())
        self.assertEqual(manifest["device"], "cuda:0,2")
        self.assertEqual(json.loads((self.root / "cuda:all" / "manifest.json").read_text())["device"], "cuda:0-2")

    def test_trials_continue_on_other_cards(self):
        whole, _ = self.run_on("cuda:0", "whole")
        self.run_on("cuda:0", "parts")
        for path in sorted((self.root / "parts").glob("trials/*/*/*/seed2")):
            subprocess.run(["rm", "-r", path], check=True)
        for path in sorted((self.root / "parts").glob("trials/*/*/*/seed1/summary.json")):
            path.unlink()
        found, made = self.run_on("cuda:1-2", "parts", "--resume")
        self.assertEqual(found, whole)
        self.assertGreater(made["cuda:1"] + made["cuda:2"], 0)

    def test_a_card_that_fails_stops_the_run_which_goes_on_without_it(self):
        whole, _ = self.run_on("cuda:0", "whole")
        done = self.olrank("run", "--quiet", "--data", DATA, "--device", "cuda:0-1", "--out", self.root / "failed", *RANKERS,
                           OLRANK_EMULATED_FAILURE="cuda:1")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("olrank: The emulated GPU has failed.\n", done.stderr)
        found, made = self.run_on("cuda:0,2", "failed", "--resume")
        self.assertEqual(found, whole)
        self.assertNotIn("cuda:1", made)

    def test_modules_of_a_ranker_on_a_card_give_what_the_cpu_gives(self):
        flags = ["--data", DATA, "--ranker", "olranknet,p2neurrank", "--set", "ranker.p2neurrank.members=2", "--network", "module", "--covariance", "none",
                 "--module", "layernorm", "--activation", "gelu", "--width", 4, "--steps", 2, "--rounds", 12, "--protocol-eval-every", 3,
                 "--seeds", "1-2", "--clicks", "perfect"]
        figures = {}
        for device, used in (("cpu", "cpu"), ("auto", "cpu"), ("cuda:1", "cuda:1")):
            done = self.olrank("run", "--quiet", *flags, "--device", device, "--out", self.root / device)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads((self.root / device / "manifest.json").read_text())["device"], used)
            with (self.root / device / "summary.csv").open(encoding="utf-8") as file:
                # The fingerprint digests the state, too.
                figures[device] = [{**row, "result_fingerprint": ""} for row in csv.DictReader(file)]
        self.assertEqual(len(figures["cpu"]), 4)
        self.assertEqual(figures["cuda:1"], figures["cpu"])
        self.assertEqual(figures["auto"], figures["cpu"])

    def test_threads_sleep_while_they_wait_where_trials_take_every_core(self):
        cores = json.loads(self.olrank("info", "--json").stdout)["threads"]
        for jobs in {cores, max(1, cores - 1)}:
            log = self.root / f"sleeps-{jobs}"
            done = self.olrank("run", "--quiet", "--data", DATA, "--device", "cuda:0", "--out", self.root / str(jobs), "--ranker", "olranknet",
                               "--width", 2, "--steps", 1, "--rounds", 1, "--clicks", "perfect", "--seeds", f"1-{cores}", "--jobs", jobs,
                               OLRANK_EMULATED_SLEEPS=str(log))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(log.exists(), jobs == cores)

    def train(self, name, *arguments, **variables):
        done = self.olrank("train", "--quiet", "--data", DATA, "--out", self.root / name, "--epochs", 2, *arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)

    def curve(self, name):
        return [json.loads(line) for line in (self.root / name / "curve.jsonl").read_text().splitlines()]

    def test_models_are_trained_on_a_card_as_on_the_cpu(self):
        cases = [["--loss", "lambdarank", "--network", "mlp", "--width", 4, "--batch", 8], ["--network", "linear", "--optimizer", "lbfgs"],
                 ["--network", "module", "--module", "relu", "--width", 4]]
        for number, case in enumerate(cases):
            with self.subTest(case=case):
                for device in ("cuda", "cpu"):
                    self.train(f"{device}{number}", "--device", device, *case, OLRANK_EMULATED_SCHEDULE="random")
                found, expected = self.curve(f"cuda{number}"), self.curve(f"cpu{number}")
                self.assertEqual(len(found), 3)
                for one, other in zip(found[1:], expected[1:]):
                    self.assertAlmostEqual(one["loss"] / other["loss"], 1.0, 4)
                    self.assertAlmostEqual(one["vali"]["loss"] / other["vali"]["loss"], 1.0, 4)

    def test_models_of_several_seeds_have_the_same_bits_wherever_they_are_trained(self):
        several = ["--network", "mlp", "--width", 4, "--batch", 8, "--seeds", "1-4"]
        prints = {}
        for name, more in (("one", ["--device", "cuda:0"]), ("three", ["--device", "cuda:all", "--jobs", 4]), ("none", ["--jobs", 3])):
            self.train(name, *several, *more)
            prints[name] = [json.loads((self.root / name / "fold1" / f"seed{seed}" / "summary.json").read_text())["result_fingerprint"] for seed in range(1, 5)]
        self.assertEqual(prints["one"], prints["three"])
        self.assertEqual(len(set(prints["one"])), 4)
        self.assertFalse(set(prints["one"]) & set(prints["none"]))
        done = self.olrank("train", "--data", DATA, "--epochs", 2, *several, "--resume", "--out", self.root / "one", "--device", "cpu")
        self.assertEqual(done.returncode, 2)
        self.assertIn("computed on a GPU", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_documents_that_do_not_fit_travel(self):
        case = ["--network", "mlp", "--width", 4, "--device", "cuda"]
        self.train("stay", *case)
        self.train("travel", *case, cards="Card=1KB")
        self.assertEqual((self.root / "stay" / "model.safetensors").read_bytes(), (self.root / "travel" / "model.safetensors").read_bytes())

    def test_auto_takes_the_card_where_its_trial_is_faster(self):
        def said(*arguments, ranker="olranknet", **variables):
            done = self.olrank("run", "--dry-run", "--data", DATA, "--ranker", ranker, "--clicks", "perfect", *arguments, **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            return next(iter(done.stderr.splitlines()), "")
        long = ["--width", 16, "--rounds", 20000, "--covariance", "diagonal"]
        self.assertRegex(said(*long), r"^cuda:0 \(Card\) computes this: about .* on a GPU, .* on the CPU\.$")
        self.assertRegex(said("--width", 4, "--rounds", 20), r"^The CPU computes this: about .* on a GPU, .* on the CPU\.$")
        self.assertEqual(said(*long, cards=""), "The CPU computes this, as no GPU can be used: OLRANK_EMULATED_GPUS names none.")
        self.assertRegex(said(*long, cards="Card=1MB"), r"^The CPU computes this, as a GPU cannot: Ranker 'olranknet' may need .* of GPU memory")
        self.assertRegex(said(*long, cards="Card=busy"), r"^The CPU computes this, as a GPU cannot: ")
        self.assertRegex(said(*long, "--shard", "1/2"), r"^The CPU computes this, as machines of other shards may have no GPU")
        self.assertRegex(said("--rounds", 20000, ranker="pairrank"), r"^The CPU computes this, as no ranker is a network that was timed on a GPU\.$")
        self.assertNotIn("computes this", said(*long, "--device", "cpu"))

    def test_auto_continues_on_the_device_that_began(self):
        command = ["run", "--data", DATA, "--ranker", "olranknet", "--width", 4, "--steps", 2, "--clicks", "perfect", "--out", self.root / "kept"]
        for device, said in (("cuda:1", "cuda:0 continues what cuda:1 began."), ("auto", "The CPU continues what it began.")):
            self.assertEqual(self.olrank(*command, "--rounds", 3, "--device", device, "--force").returncode, 0)
            more = self.olrank(*command, "--rounds", 6, "--resume")
            self.assertEqual((more.returncode, more.stderr.splitlines()[0]), (0, said), more.stderr)

    def test_auto_of_train_takes_the_card_from_a_size_on(self):
        command = ["train", "--data", DATA, "--network", "mlp", "--width", 4, "--threads", 1]
        large = [*command, "--width", 512, "--batch", 30, "--epochs", LARGE_EPOCHS, "--patience", 1, "--learning-rate", 1e-30]
        small = self.olrank(*command, "--epochs", 2, "--out", self.root / "small")
        self.assertRegex(small.stderr.splitlines()[0], r"^The CPU computes this: about .* on a GPU, .* on the CPU\.$")
        for name, more, said in (("none", {"cards": ""}, "The CPU computes this, as no GPU can be used: "),
                                 ("card", {}, r"cuda:0 \(Card\) computes this: ")):
            with self.subTest(name=name):
                big = self.olrank(*large, "--out", self.root / name, **more)
                self.assertEqual(big.returncode, 0, big.stderr)
                self.assertRegex(big.stderr.splitlines()[0], "^" + said)
                self.assertEqual(json.loads((self.root / name / "manifest.json").read_text()).get("device"), None if more else "cuda:0")
        again = self.olrank(*large, "--resume", "--out", self.root / "card")
        self.assertEqual((again.returncode, again.stderr.splitlines()[0]), (0, "cuda:0 continues what cuda:0 began."), again.stderr)

    def test_info_lists_every_card_with_its_memory(self):
        cards = "Card=8GB,Card=busy,Other card=4GB"
        done = self.olrank("info", "--json", cards=cards)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "warning: cuda:1 cannot be used now.\n")
        devices = json.loads(done.stdout)["cuda"]["devices"]
        self.assertEqual([(gpu["index"], gpu["name"], gpu["free_bytes"]) for gpu in devices],
                         [(0, "Card", 8 * 10**9), (1, "Card", None), (2, "Other card", 4 * 10**9)])
        text = self.olrank("info", cards=cards).stdout
        self.assertIn("cuda:1     Card, capability 9.0, unknown of 0.0 GiB free\n", text)
        self.assertIn("cuda:2     Other card, capability 9.0, 3.7 of 3.7 GiB free\n", text)
        self.assertIn("auto       cuda:0 for networks whose trials are faster there", text)
        self.assertIn("auto       the CPU, as no GPU can be used\n", self.olrank("info", cards="").stdout)

    def test_cards_that_do_not_exist_or_differ_are_refused(self):
        for device, complaint, *more in (
            ("cuda:0-3", "There is no cuda:3: the driver reports 3 GPUs"),
            ("cuda:2-1", "The range 2-1 in 'cuda:2-1' runs backwards: use 1-2."),
            ("cuda:1,1", "'cuda:1,1' names cuda:1 twice: name each GPU once."),
            ("cuda:0,", "'cuda:0,' is not a device: use auto, cpu, cuda, cuda:N, cuda:all or a list such as"),
            ("cuda:1", "'olranknet' cannot, as the covariance of a module lives on the CPU. Use --device cpu.", "--network", "module", "--module", "layernorm"),
        ):
            self.assertIn(complaint, self.refusal("--device", device, "--ranker", "olranknet", *more))
        other = self.refusal("--device", "cuda:all", "--ranker", "olranknet", cards="Card=8GB,Other=8GB,Card=8GB")
        self.assertIn("cuda:0 (Card, 132 multiprocessors) and cuda:1 (Other, 132 multiprocessors) differ", other)
        self.assertIn("such as --device cuda:0,2.", other)
        self.assertIn("There is no GPU", self.refusal("--device", "cuda:all", "--ranker", "olranknet", cards=""))
        bench = self.olrank("bench", "round", "--device", "cuda:0-1")
        self.assertEqual((bench.returncode, bench.stderr),
                         (2, "olrank: --device cuda:0-1: This command uses one GPU: name one, such as cuda:0.\n"))

    def test_too_little_memory_on_one_card_is_refused_before_the_run(self):
        flags = ["--device", "cuda:all", "--jobs", 6, "--ranker", "olranknet", "--rounds", 1000, "--seeds", "1-6", "--clicks", "perfect"]
        complaint = self.refusal(*flags, cards="Card=8GB,Card=30MB,Card=8GB")
        self.assertIn("of GPU memory per trial with 2 trials in parallel on cuda:1,", complaint)
        self.assertIn("Card has 30.0 MB free there", complaint)
        self.assertIn("as would --device cuda:0,2.\n", complaint)

    def test_trials_for_which_memory_is_short_play_in_fewer_seats(self):
        whole, _ = self.run_on("cuda:0", "whole", "--jobs", 6)
        for cards, device, said in (
            ("Card=60MB", "cuda:0", r"^3 trials play at once and not 6: one of 'olranknet' may need .* MB of GPU memory, and cuda:0 \(Card\) has 60\.0 MB free, of which"),
            ("Card=20MB", "cuda:0", "^1 trial plays at once and not 6: "),
            ("Card=80MB,Card=40MB", "cuda:all", r"^5 trials play at once and not 6: .* cuda:1 \(Card\) has 40\.0 MB free"),
        ):
            with self.subTest(cards=cards):
                plan = self.olrank("run", "--dry-run", "--data", DATA, "--device", device, "--jobs", 6, *RANKERS, cards=cards)
                self.assertRegex(plan.stderr.splitlines()[0], said)
                found, _ = self.run_on(device, cards, "--jobs", 6, cards=cards)
                self.assertEqual(found, whole)
                self.assertIn("jobs = 6\n", (self.root / cards / "config.toml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
