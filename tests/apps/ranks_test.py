"""`olrank run --share-members`: several processes give the bits of one, and stop together."""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["OLRANK_PROGRAM"]
DATA = "synth:small?queries=60&seed=3"
TRIAL = ["--data", DATA, "--ranker", "p2neurrank", "--members", "4", "--width", "8", "--seeds", "1", "--clicks", "navigational",
         "--protocol-eval-every", "25"]
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
CLEAN = {name: value for name, value in os.environ.items()
         if name not in VARIABLES and not name.startswith(("SLURM_", "JOB_COMPLETION", "TORCHELASTIC_"))}
LONG = "100000"  # rounds of a run that a test ends


def free_port():
    """Below those that the system gives to connections: one of these could take the port before the first rank does."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(first // 2, first)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


class Ranks:
    """The processes of one run."""

    def __init__(self, count, *arguments, programs=None, folders=None, of_rank=lambda rank: (), **variables):
        place = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())} | variables
        self.processes = [
            subprocess.Popen([programs[rank] if programs else PROGRAM, "run", "--share-members", *map(str, arguments),
                              *of_rank(rank)], env=CLEAN | {"RANK": str(rank)} | place, text=True,
                             cwd=folders[rank] if folders else None, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for rank in range(count)]

    def ends(self):
        """The exit code and stderr of each rank."""
        said = [process.communicate(timeout=120)[1] for process in self.processes]
        return [(process.returncode, text) for process, text in zip(self.processes, said)]

    def signal(self, rank, number):
        self.processes[rank].send_signal(number)

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()


def has_gloo():
    with tempfile.TemporaryDirectory() as folder:
        return "built without Gloo" not in Ranks(2, *TRIAL, "--rounds", 1, "--out", f"{folder}/o").ends()[0][1]


def trial(out, seed=1):
    return out / "trials" / "p2neurrank" / "navigational" / "fold1" / f"seed{seed}"


def curve(out, seed=1):
    file = trial(out, seed) / "curve.jsonl"
    points = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for point in points:
        del point["seconds"]
    return points


def wait_for_points(out, count, process):
    while len(curve(out)) < count:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


@unittest.skipUnless(has_gloo(), "this olrank was built without Gloo")
class SharedRun(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)

    def run_whole(self, name, *arguments):
        """By one process."""
        done = subprocess.run([PROGRAM, "run", "--quiet", *map(str, arguments), "--out", str(self.root / name)], env=CLEAN,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.root / name

    def run_ranks(self, name, count, *arguments, code=0, **options):
        ends = Ranks(count, *arguments, "--out", self.root / name, **options).ends()
        for of_rank, said in ends:
            self.assertEqual(of_rank, code, said)
        return self.root / name

    def run_that_stands_still(self, count, still):
        """A run of which one rank has been stopped after a few rounds."""
        out = self.root / f"o{still}"
        ranks = Ranks(count, *TRIAL, "--rounds", LONG, "--out", out)
        self.addCleanup(ranks.end)
        wait_for_points(out, 2, ranks.processes[0])
        ranks.signal(still, signal.SIGSTOP)
        return ranks

    def check_equal(self, mine, theirs, seeds=(1,)):
        for seed in seeds:
            self.assertEqual(curve(mine, seed), curve(theirs, seed))
            a, b = (json.loads((trial(out, seed) / "summary.json").read_text()) for out in (mine, theirs))
            for key in ("result_fingerprint", "area", "rounds", "last", "parameters", "notes", "recipe"):
                self.assertEqual(a[key], b[key], key)
            for file in ("model.safetensors", "queries.csv"):
                self.assertEqual((trial(mine, seed) / file).read_bytes(), (trial(theirs, seed) / file).read_bytes(), file)
        self.assertEqual((mine / "summary.csv").read_bytes(), (theirs / "summary.csv").read_bytes())

    def test_two_and_three_processes_give_the_bits_of_one(self):
        # Two trials; 4 members are 2 + 2 and 1 + 1 + 2.
        settings = [*TRIAL, "--seeds", "1,2", "--rounds", 60]
        whole = self.run_whole("whole", *settings)
        for count in (2, 3):
            self.check_equal(self.run_ranks(f"of-{count}", count, *settings), whole, seeds=(1, 2))

    def test_trainers_of_mini_batches_and_the_cosine_are_the_same_too(self):
        settings = [*TRIAL, "--rounds", 30, "--loss", "mean", "--epochs", 2, "--optimizer", "adam",
                    "--protocol-cosine", "offline"]
        self.check_equal(self.run_ranks("shared", 2, *settings), self.run_whole("whole", *settings))

    def test_a_signal_to_one_rank_stops_all_and_any_number_continues(self):
        settings = [*TRIAL, "--rounds", 600]
        out = self.root / "shared"
        ranks = Ranks(3, *settings, "--out", out)
        wait_for_points(out, 2, ranks.processes[0])
        ranks.signal(1, signal.SIGTERM)
        for code, said in ranks.ends():
            self.assertEqual(code, 143, said)
        self.assertLess(len(curve(out)), 25)
        self.run_ranks("shared", 2, *settings, "--resume")
        self.check_equal(out, self.run_whole("whole", *settings))

    def test_a_rank_that_dies_ends_all_and_the_checkpoint_is_kept(self):
        settings = [*TRIAL, "--rounds", 600, "--run-checkpoint-every", 20]
        for victim in (0, 2):
            out = self.root / f"of-{victim}"
            ranks = Ranks(3, *settings, "--out", out)
            wait_for_points(out, 3, ranks.processes[0])
            began = time.monotonic()
            ranks.signal(victim, signal.SIGKILL)
            ends = ranks.ends()
            self.assertLess(time.monotonic() - began, 60)
            for code, said in ends[:victim] + ends[victim + 1:]:
                self.assertEqual(code, 1, said)
                self.assertIn("so this run ends", said)
                self.assertEqual(said.count("The last checkpoint is kept, and --resume continues from it."), 1, said)
            self.assertTrue((trial(out) / "checkpoint" / "state.safetensors").exists())
            self.assertLess(len(curve(out)), 25)
        self.run_whole("of-2", *settings, "--resume")
        self.check_equal(out, self.run_whole("whole", *settings))

    def test_a_rank_that_stands_still_ends_the_others(self):
        # The first rank hosts the store that all watch.
        sentences = {1: "rank 1 has not been heard of for 15 seconds", 0: "127.0.0.1 has not answered for 15 seconds"}
        runs = {still: self.run_that_stands_still(3, still) for still in sentences}
        # Before it has joined.
        early = {still: Ranks(2, *TRIAL, "--rounds", LONG, "--out", self.root / f"early{still}") for still in (0, 1)}
        for still, ranks in early.items():
            self.addCleanup(ranks.end)
            ranks.signal(still, signal.SIGSTOP)
        began = time.monotonic()
        for still, sentence in sentences.items():
            with self.subTest(rank=still):
                ranks = runs[still]
                others = [number for number in range(3) if number != still]
                self.assertEqual([ranks.processes[other].wait(timeout=60) for other in others], [1, 1])
                self.assertLess(time.monotonic() - began, 30)
                ranks.signal(still, signal.SIGKILL)
                self.assertIn(sentence, "".join(ranks.ends()[other][1] for other in others))

        for still, ranks in early.items():
            with self.subTest(early=still):
                self.assertEqual(ranks.processes[1 - still].wait(timeout=60), 1)
                self.assertLess(time.monotonic() - began, 35)  # thirty, on an idle machine
                ranks.signal(still, signal.SIGKILL)
                self.assertIn("could not join the 2 ranks", ranks.ends()[1 - still][1])

    def test_a_signal_ends_a_rank_although_another_stands_still(self):
        for still in (1, 0):
            with self.subTest(rank=still):
                ranks = self.run_that_stands_still(2, still)
                time.sleep(1)
                began = time.monotonic()
                ranks.signal(1 - still, signal.SIGTERM)
                ranks.processes[1 - still].wait(timeout=30)
                self.assertLess(time.monotonic() - began, 8)  # five, on an idle machine
                ranks.signal(still, signal.SIGKILL)

    def test_ranks_that_do_not_agree_how_many_they_are_are_refused(self):
        port = str(free_port())
        began = time.monotonic()
        ranks = [subprocess.Popen([PROGRAM, "run", "--share-members", *TRIAL, "--rounds", "5", "--out", str(self.root / "o")], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=CLEAN | {"RANK": str(rank), "WORLD_SIZE": str(rank + 2), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
                 for rank in range(2)]
        for rank in ranks:
            said = rank.communicate(timeout=60)[1]
            self.assertEqual(rank.returncode, 2, said)
            self.assertIn("start every rank with the same WORLD_SIZE", said)
        self.assertLess(time.monotonic() - began, 10)

    def test_a_member_that_diverges_ends_the_trial_on_every_rank(self):
        settings = [*TRIAL, "--rounds", 30, "--optimizer", "adam", "--learning-rate", "1e20"]
        alone = Ranks(1, *settings, "--out", self.root / "alone").ends()
        shared = Ranks(3, *settings, "--out", self.root / "shared").ends()
        said = "Training failed in round 1 at step 2"
        for code, _ in alone + shared:
            self.assertEqual(code, 1)
        lines = [next(line for line in ends[0][1].splitlines() if said in line) for ends in (alone, shared)]
        self.assertEqual(*lines)

    def refusals(self, count, *arguments, **options):
        """What every rank says, with exit code 2."""
        said = []
        for code, text in Ranks(count, *arguments, "--out", self.root / "o", **options).ends():
            self.assertEqual(code, 2, text)
            said.append(text)
        self.assertFalse((self.root / "o").exists())
        return said

    def test_ranks_that_do_not_fit_together_are_refused(self):
        trial_of = [*TRIAL, "--rounds", 30]
        for said in self.refusals(3, *trial_of, "--members", 2):
            self.assertIn("3 ranks are more than the 2 members of ranker 'p2neurrank': start at most 2.", said)
        for said in self.refusals(2, *trial_of, of_rank=lambda rank: ("--learning-rate", f"0.{rank + 1}")):
            self.assertIn("Rank 1 has another configuration than rank 0: start every rank with the same files", said)
        program = pathlib.Path(PROGRAM).read_bytes()
        revision = json.loads(subprocess.run([PROGRAM, "info", "--json"], capture_output=True, text=True).stdout)["revision"]
        other = self.root / "other"
        other.write_bytes(program.replace(revision.encode(), revision[::-1].encode()))
        other.chmod(0o755)
        for said in self.refusals(2, *trial_of, programs=[PROGRAM, other]):
            self.assertIn("Rank 1 has another build than rank 0", said)

    def test_ranks_with_other_data_are_refused(self):
        folders = [self.root / "one", self.root / "two"]
        for seed, folder in enumerate(folders, 1):
            folder.mkdir()
            subprocess.run([PROGRAM, "data", "synth", f"synth:small?queries=40&seed={seed}", "--out", "data"], check=True,
                           cwd=folder, env=CLEAN, capture_output=True)
        for said in self.refusals(2, *TRIAL, "--data", "data", "--rounds", 30, folders=folders):
            self.assertIn("Rank 1 has other data of fold 1 than rank 0", said)

    def test_what_one_process_alone_can_do_is_refused(self):
        trial_of = [*TRIAL, "--rounds", 30]
        for more, said in ((["--ranker", "p2linrank"], "Ranker 'p2linrank' has no networks to share among 2 ranks"),
                           (["--jobs", 2], "2 ranks play one trial at a time, so run.jobs has to be 1, not 2."),
                           (["--device", "cuda:1"], "--device cuda:1 gives the 2 ranks of this machine the same cards"),
                           (["--device", "cuda:all"], "--device cuda:all names several cards, but each rank uses one"),
                           (["--device", "cuda:0-1"], "--device cuda:0-1 names several cards, but each rank uses one"),
                           (["--dry-run"], "--dry-run is for one process"),
                           (["--trace", self.root / "t"], "--trace is for one process")):
            of_networks = ("--ranker", "p2neurrank", "--width", "8") if "--ranker" in more else ()
            for text in self.refusals(2, *(one for one in trial_of if one not in of_networks), *more):
                self.assertIn(said, text)
        for variables, said in (({"MASTER_PORT": ""}, "WORLD_SIZE asks for 2 ranks, but MASTER_PORT is not set"),
                                ({"RANK": "2"}, "RANK has to be a number from 0 to 1, not '2'"),
                                ({"MASTER_PORT": "many"}, "MASTER_PORT has to be a number from 1 to 65535, not 'many'")):
            for text in self.refusals(2, *trial_of, **variables):
                self.assertIn(said, text)

    def test_results_that_are_there_are_refused_on_every_rank(self):
        settings = [*TRIAL, "--rounds", 5]
        self.run_whole("o", *settings)
        for code, said in Ranks(2, *settings, "--out", self.root / "o").ends():
            self.assertEqual(code, 2, said)
            self.assertIn("already contains results", said)

    def test_without_the_flag_the_variables_number_shards(self):
        done = subprocess.run([PROGRAM, "run", *TRIAL, "--seeds", "1,2", "--rounds", "5", "--out", str(self.root / "o")],
                              env=CLEAN | {"RANK": "1", "WORLD_SIZE": "2"}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(trial(self.root / "o", 1).exists())
        self.assertTrue(trial(self.root / "o", 2).exists())


if __name__ == "__main__":
    unittest.main()
