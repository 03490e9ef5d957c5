"""olrank tune as a process: the grid, the choice recomputed from the trials' summaries, resuming; commands/tune.test has shards and
what is replaced."""

import csv
import json
import pathlib
import shutil
import signal
import statistics
import unittest

from command_line import InFolder, olrank, succeed

CONFIGURATION = pathlib.Path("tests/apps/tune.toml")
AXES = {"pair": {"alpha": [0.01, 0.1, 1.0], "refine": [False, True]}, "pdgd": {"learning_rate": [0.01, 0.1, 1.0]}, "greedy": {}}
USERS = ["perfect", "informational"]


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def summaries(folder):
    return [json.loads(file.read_text()) for file in sorted(folder.glob("trials/*/*/*/*/summary.json"))]


def points(ranker):
    """(folder, {key: value}) in grid order, computed independently of the program."""
    grid = [("", {})]
    for key, values in AXES[ranker].items():
        grid = [(name + f"+{key}=" + ("true" if v is True else "false" if v is False else f"{v:g}"), {**chosen, key: v})
                for name, chosen in grid for v in values]
    return [(ranker + name, chosen) for name, chosen in grid]


def mean_area(found, name, by, trials):
    areas = [s["area"][by] for s in found if s["ranker"] == name]
    assert len(areas) == trials, (name, len(areas))
    return statistics.fmean(areas)


def settings_in(text, ranker):
    """The [[ranker]] table of a printed configuration."""
    block = next(b for b in text.split("[[ranker]]")[1:] if f'name = "{ranker}"' in b)
    lines = (line.split(" = ", 1) for line in block.split("[", 1)[0].splitlines() if " = " in line)
    return dict(lines)


def cell(value):
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


class Tune(InFolder):
    def setUp(self):
        super().setUp()
        self.config = self.root / "c.toml"
        self.config.write_text(CONFIGURATION.read_text().format(rounds=60))

    def tune(self, out, *flags, code=0):
        done = olrank("tune", self.config, "--out", self.root / out, *flags)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def check(self, out, by, folds=(1,)):
        out = self.root / out
        tuned, tested = summaries(out / "tuning"), summaries(out / "test")
        self.assertEqual(len(tuned), 9 * 4 * len(folds))
        self.assertEqual(len(tested), 3 * 4 * len(folds))
        winners = table(out / "winners.csv")
        trials = 4 * len(folds)
        self.assertEqual([line["ranker"] for line in winners], ["pair", "pdgd", "greedy"])
        marked = {(row["ranker"], row["point"]): row["chosen"] for row in table(out / "tuning.csv")}
        self.assertEqual(len(marked), 9)
        for line in winners:
            ranker = line["ranker"]
            chosen = {}
            if AXES[ranker]:
                grid = points(ranker)
                areas = [mean_area(tuned, name, by, trials) for name, _ in grid]
                best = areas.index(max(areas))
                chosen = grid[best][1]
                for i, (name, _) in enumerate(grid):
                    self.assertEqual(marked[ranker, name], "1" if i == best else "0")
            for key in ("alpha", "refine", "learning_rate"):
                self.assertEqual(line[key], cell(chosen[key]) if key in chosen else "")
            own = [s for s in tested if s["ranker"] == ranker]
            self.assertEqual((int(line["trials"]), len(own)), (trials, trials))
            for column, figures in (("offline_area", [s["area"]["offline"] for s in own]),
                                    ("cndcg@10", [s["last"]["online"]["cndcg@10"] for s in own])):
                # Sums of four numbers in another order differ by a few roundings.
                self.assertAlmostEqual(float(line[column]), statistics.fmean(figures), delta=1e-12 * max(figures))
                self.assertAlmostEqual(float(line[column + "_sd"]), statistics.stdev(figures), delta=1e-9)
            said = settings_in((out / "config.toml").read_text(), ranker)
            for key, value in chosen.items():
                self.assertEqual(json.loads(said[key]), value)
            for summary in own:
                for key, value in chosen.items():
                    played = dict(pair.split(" = ", 1) for pair in summary["recipe"]["ranker"].splitlines())
                    self.assertEqual(json.loads(played[key]), value, summary["recipe"])

    def test_chooses_per_ranker(self):
        done = self.tune("o", "--quiet", "--json")
        self.check("o", "offline")
        out = self.root / "o"
        said = json.loads(done.stdout)
        self.assertEqual((said["by"], said["cutoff"], len(said["winners"])), ("offline", 10, 3))
        for line, row in zip(said["winners"], table(out / "winners.csv")):
            self.assertEqual(line["test"]["offline_ndcg"]["mean"], float(row["offline_ndcg@10"]))
            self.assertEqual(line["tuning"] is None, line["ranker"] == "greedy")
            for key, value in line["chosen"].items():
                values = AXES[line["ranker"]][key]
                note = any(n.startswith(f"{key} = ") for n in line["notes"])
                self.assertEqual(note, len(values) > 2 and value in (values[0], values[-1]))
        # Tuning was evaluated on the validation set and the test on the test set, which differ.
        for folder, part in (("tuning", "vali"), ("test", "test")):
            self.assertEqual(json.loads((out / folder / "manifest.json").read_text())["config"]["data"]["evaluate"], part)
        data = [{s["recipe"]["data"] for s in summaries(out / part)} for part in ("tuning", "test")]
        self.assertEqual([len(one) for one in data], [1, 1])
        self.assertNotEqual(data[0], data[1])
        # Running the chosen configuration repeats the test.
        succeed("run", out / "config.toml", "--out", self.root / "again", "--quiet")
        self.assertEqual((self.root / "again/summary.csv").read_text(), (out / "test/summary.csv").read_text())
        for part in ("config.toml", "test/config.toml", "tuning/config.toml"):
            succeed("run", out / part, "--resume", "--quiet")

    def test_another_choice_is_refused_until_the_earlier_test_is_removed(self):
        for fold in (1, 2):
            succeed("data", "synth", f"small?queries=30&seed={fold + 2}", "--out", self.root / f"data/Fold{fold}")
        data = ["--data", self.root / "data", "--set", "data.folds=1-2", "--jobs", 2, "--quiet"]
        self.tune("o", *data, "--by", "online")
        self.check("o", "online", (1, 2))
        before = (self.root / "o/tuning.csv").read_text()
        refused = self.tune("o", *data, "--resume", code=2)
        self.assertIn("--resume to test the new choice", refused.stderr)
        self.assertEqual((self.root / "o/tuning.csv").read_text(), before)
        shutil.rmtree(self.root / "o/test")
        self.tune("o", *data, "--resume")
        self.check("o", "offline", (1, 2))

    def test_resumes_after_a_signal_in_tuning_or_test(self):
        self.config.write_text(CONFIGURATION.read_text().format(rounds=1500))
        self.tune("whole", "--quiet", "--jobs", 2)
        for part, number, code in (("tuning", signal.SIGINT, 130), ("test", signal.SIGTERM, 143)):
            out = self.root / part
            done = self.signalled(number, lambda: any(out.glob(f"{part}/trials/*/*/*/*/curve.jsonl")), "tune", self.config, "--out", out, "--quiet")
            self.assertEqual(done[0], code, done)
            self.assertFalse((out / "winners.csv").exists())
            self.tune(part, code=2)
            self.tune(part, "--resume", "--quiet")
            for file in ("tuning.csv", "winners.csv", "tuning/summary.csv", "test/summary.csv"):
                self.assertEqual((out / file).read_text(), (self.root / "whole" / file).read_text(), file)


if __name__ == "__main__":
    unittest.main()
