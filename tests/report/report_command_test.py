"""`olrank report` end to end: pages, figures, tables in LaTeX, comparisons, missing trials and bad input."""

import csv
import html.parser
import json
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from command_line import InFolder, olrank  # noqa: E402

from synthetic_experiment import change_evaluations, ranker, trial_folder, write_experiment, write_study

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "br", "link", "img", "hr", "input"}


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


class Reader(html.parser.HTMLParser):
    """The page's text and elements; fails if elements are not properly nested."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.attributes, self.open, self.cells = "", [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *attribute) for attribute in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


class Report(InFolder):
    def report(self, *arguments, **options):
        done = olrank("report", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def page(self, *arguments, **options):
        self.report(*arguments)
        return Reader((options.get("at", pathlib.Path(arguments[0])) / "report.html").read_text())

    def says(self, page, *words):
        for word in words:
            self.assertTrue(word in page.text, f"the page does not say '{word}'")

    def figures(self, *arguments):
        self.report(*arguments, "--json", self.folder / "r.json", "--quiet")
        results = json.loads((self.folder / "r.json").read_text())
        return {(entry["data"], entry["clicks"], column["figure"], row["ranker"]): row
                for entry in results["results"] for column in entry["final"] for row in column["rankers"]}, results


class Page(Report):
    def test_is_self_contained_and_describes_its_figures_in_text(self):
        write_experiment(self.folder / "e", users=("perfect", "informational"), extras=True)
        page = self.page(self.folder / "e")
        self.assertNotIn("script", page.tags)
        self.assertEqual([a for a in page.attributes if a[1] in ("src", "href", "onload", "srcset")], [])
        text = (self.folder / "e" / "report.html").read_text()
        self.assertEqual(re.findall(r"url\(|@import|https?://", text), [])
        figures = text.count("<svg class=\"chart\" role=\"img\" aria-labelledby=")
        self.assertGreaterEqual(figures, 2 * 14)
        self.assertEqual(text.count("<desc id="), figures)
        identities = re.findall(r" id=\"([^\"]+)\"", text)
        self.assertEqual(len(identities), len(set(identities)))
        for word in ("prefers-color-scheme:dark", "@media print", "viewport"):
            self.assertIn(word, text)
        self.says(page, "made-up", "gain 2^grade - 1", "1, 2, 3", "cpu", "0123456789ab", "Deviations from the protocolNone.",
                  "Cosine to the offline model", "Width relative to exact width", "Block size by rank, round 500",
                  "Quality against time", "Regret", "Certain share of the top 10")

    def test_large_experiments_give_small_pages_quickly(self):
        rankers = [ranker(name) for name in ("full", "diagonal", "ensemble", "greedy", "bandit")]
        write_experiment(self.folder / "e", rankers, users=("perfect", "navigational", "informational"),
                         seeds=range(1, 11), evaluations=50, extras=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.report(self.folder / "e")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # This is processor time, as others may use the processor, too.
        self.assertLess(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2.0)
        self.assertLess((self.folder / "e" / "report.html").stat().st_size, 1_500_000)

    def test_escapes_markup_in_names(self):
        name = "<script>alert('&\"1\"')<&script>,$x_1$"
        user = "<b>bold"
        write_experiment(self.folder / "e", [ranker(name), ranker("b\\%"), ranker("</style></title>".replace("/", "|"))],
                         users=(user,), data={"source": "<img src=x onerror=alert(1)>"},
                         deviations=["ranker <i>x</i>: alpha = 1"])
        page = self.page(self.folder / "e", "--figures", self.folder / "f", "--latex", self.folder / "t.tex", "--csv",
                         self.folder / "r.csv", "--json", self.folder / "r.json")
        self.assertEqual({"script", "b", "img", "i"} & set(page.tags), set())
        self.says(page, name, user, "<img src=x onerror=alert(1)>", "ranker <i>x</i>: alpha = 1")
        drawings = list((self.folder / "f").glob("*.svg"))
        self.assertGreater(len(drawings), 5)
        for drawing in drawings:
            root = xml.etree.ElementTree.parse(drawing).getroot()
            self.assertEqual({element.tag for element in root.iter()} - {SVG + tag for tag in (
                "svg", "title", "desc", "rect", "path", "text", "g")}, set())
        rows = rows_of(self.folder / "r.csv")
        self.assertEqual({row["ranker"] for row in rows} & {name}, {name})
        self.assertEqual({entry["clicks"] for entry in json.loads((self.folder / "r.json").read_text())["results"]}, {user})
        latex = (self.folder / "t.tex").read_text().replace(r"\allowbreak{}", "")
        for words in (r"\$x\_1\$", r"b\textbackslash{}\%", r"\label{tab:olrank-b-bold}"):
            self.assertIn(words, latex)


class Statistics(Report):
    def test_intervals_are_over_trials(self):
        write_experiment(self.folder / "one", seeds=(1, 2, 3, 4))
        write_experiment(self.folder / "many", folds=(1, 2, 3), seeds=(1, 2))
        for name, units, over_folds, words in (("one", 4, False, "over 4 seeds of fold 1; it holds for this fold only"),
                                               ("many", 3, True, "over 6 trials.")):
            figures, results = self.figures(self.folder / name)
            row = figures["made-up", "perfect", "offline-ndcg", "pairrank"]
            self.assertEqual((row["units"], row["over_folds"]), (units, over_folds))
            self.assertIn(words, results["results"][0]["note"])
            values = [json.loads(file.read_text())["last"]["offline"]["ndcg@10"]
                      for file in (self.folder / name / "trials/pairrank").rglob("summary.json")]
            mean = statistics.fmean(values)
            quantile = {4: 3.182446, 6: 2.570582}[len(values)]
            self.assertAlmostEqual(row["mean"], mean, places=12)
            self.assertAlmostEqual(row["high"] - mean, quantile * statistics.stdev(values) / len(values) ** 0.5, places=7)

    def test_console_page_and_files_have_the_same_numbers(self):
        """Means and ± are over the trials of all folds, wrong orders over each whole trial and not its last evaluations."""
        experiment = write_experiment(self.folder / "e", folds=(1, 2, 3), seeds=(1, 2))
        offline, wrong = [], []
        for number, file in enumerate(sorted((experiment / "trials/pairrank").rglob("curve.jsonl"))):
            def count_orders(at, point, number=number):
                if at > 0:
                    point["false_certain"] = {"share": 0.5 / (at + number), "of": 20 * at}

            points = change_evaluations(file.parent, count_orders)
            offline.append(points[-1]["offline"]["ndcg@10"])
            counted = [point["false_certain"] for point in points[1:]]
            wrong.append(sum(one["share"] * one["of"] for one in counted) / sum(one["of"] for one in counted))
        mean = statistics.fmean(offline)
        half = 2.570582 * statistics.stdev(offline) / 6 ** 0.5
        share = statistics.fmean(wrong)
        done = self.report(experiment, "--csv", self.folder / "r.csv")
        line = next(line for line in done.stdout.splitlines() if line.split()[:2] == ["perfect", "pairrank"])
        self.assertIn(f" {mean:.4f} ± {half:.4f} ", line)
        self.assertIn(f" {100 * share:.1f} % ", line)
        self.says(Reader((experiment / "report.html").read_text()), f"{mean:.4f} ± {half:.4f}", f"{share:.3f}")
        means = next(row for row in json.loads(olrank("report", experiment, "--out", self.folder / "o", "--json").stdout)["results"]
                     [0]["final"] if row["figure"] == "false-certain")["rankers"]
        self.assertAlmostEqual(next(row for row in means if row["ranker"] == "pairrank")["mean"], share, places=12)
        rows = {(row["ranker"], row["figure"]): row for row in rows_of(self.folder / "r.csv")
                if not row["round"]}
        self.assertAlmostEqual(float(rows["pairrank", "false-certain"]["mean"]), share, places=12)
        self.assertAlmostEqual(float(rows["pairrank", "offline-ndcg"]["high"]), mean + half, places=6)

    def test_marks_the_best_ranker_and_those_not_significantly_worse(self):
        """The second ranker is behind the first by less than the noise, the third by far; all share the noise of folds and
        seeds."""
        rankers = [ranker("first"), ranker("second"), ranker("third")]
        write_experiment(self.folder / "e", rankers, seeds=range(1, 9), height=[0.4502, 0.45, 0.40])
        figures, results = self.figures(self.folder / "e")
        marks = {name: (figures["made-up", "perfect", "offline-ndcg", name]["best"],
                        figures["made-up", "perfect", "offline-ndcg", name]["not_significantly_worse"])
                 for name in ("first", "second", "third")}
        best = [name for name, (is_best, _) in marks.items() if is_best]
        self.assertEqual(len(best), 1)
        self.assertIn(best[0], ("first", "second"))
        self.assertEqual(marks["third"], (False, False))
        self.assertEqual(sum(near for _, near in marks.values()), 1)
        regret = [row for row in results["results"][0]["final"] if row["figure"] == "regret"][0]["rankers"]
        self.assertEqual([row["ranker"] for row in regret if row["best"]], ["first"])  # the smallest
        column = results["results"][0]["final"][0]
        self.assertEqual(len(column["pairs"]), 3)
        for pair in column["pairs"]:
            self.assertGreaterEqual(pair["t_p_holm"], pair["t_p"])
            self.assertEqual((pair["difference"]["units"], pair["sign_flips"]), (8, "all"))
        self.assertIn("Holm's correction over 3 pairs", results["results"][0]["note"])
        latex = self.folder / "t.tex"
        self.report(self.folder / "e", "--latex", latex)
        self.assertEqual(latex.read_text().count("\\mathbf"), 2)
        for rule in ("\\toprule", "\\midrule", "\\bottomrule", "\\label{tab:olrank-perfect}"):
            self.assertIn(rule, latex.read_text())
        # Differences from the best ranker, as the table of pairs has them.
        for row, pair in (("third", column["pairs"][1 if best[0] == "first" else 2]),
                          ("second" if best[0] == "first" else "first", column["pairs"][0])):
            difference = pair["difference"]
            sign = -1 if pair["a"] == best[0] else 1
            star = "^{*}" if pair["t_p_holm"] < 0.05 else ""
            self.assertIn(f"${sign * difference['mean']:+.4f} \\pm {difference['high'] - difference['mean']:.4f}{star}$",
                          latex.read_text(), row)

    def test_explains_why_a_single_seed_has_no_bands(self):
        write_experiment(self.folder / "e", seeds=(7,))
        page = self.page(self.folder / "e")
        self.says(page, "There is only one seed", "The lines have no bands")
        self.assertNotIn("class=\"band", (self.folder / "e" / "report.html").read_text())
        self.assertNotIn("±", page.text.split("How to read this report")[0])

    def test_figures_and_tables_agree(self):
        write_experiment(self.folder / "e", folds=(1, 2), seeds=(1, 2))
        self.report(self.folder / "e", "--figures", self.folder / "f", "--csv", self.folder / "r.csv")
        drawn = rows_of(self.folder / "f" / "perfect-offline-ndcg.csv")
        exported = [row for row in rows_of(self.folder / "r.csv") if row["figure"] == "offline-ndcg" and row["round"]]
        self.assertEqual(*([[row[key] for key in ("ranker", "round", "mean", "low", "high")] for row in rows] for rows in (drawn, exported)))
        self.assertEqual(len(drawn), 2 * 11)


class Curves(Report):
    def lines(self, page):
        return page.count("opacity=\"0.55\""), page.count("class=\"band")

    def test_few_seeds_are_thin_lines_and_more_are_bands_of_paired_differences(self):
        for seeds, thin, bands in ((1, False, False), (2, True, False), (3, True, False), (4, False, True)):
            experiment = write_experiment(self.folder / f"e{seeds}", seeds=range(1, seeds + 1))
            page = self.page(experiment, "--figures", self.folder / f"f{seeds}")
            counted = self.lines((experiment / "report.html").read_text())
            self.assertEqual((counted[0] > 0, counted[1] > 0), (thin, bands), seeds)
            self.says(page, {1: "The lines have no bands", 4: "of paired differences where a title says 'minus pairrank'"}
                      .get(seeds, f"thin lines the {seeds} seeds"))
            # The level has no band of its own where the difference has one.
            level = (self.folder / f"f{seeds}" / "perfect-offline-ndcg.svg").read_text()
            self.assertNotIn("class=\"band", level)

    def test_differences_are_paired_and_taken_against_the_baseline(self):
        experiment = write_experiment(self.folder / "e", seeds=range(1, 6))
        for baseline, other, sign in (("pairrank", "pdgd", -1), ("pdgd", "pairrank", 1)):
            page = self.page(experiment, "--figures", self.folder / baseline, "--baseline", baseline)
            self.says(page, f"Offline NDCG@10, minus {baseline}", f"Online discounted NDCG@10, minus {baseline}")
            rows = rows_of(self.folder / baseline / "perfect-offline-ndcg-difference.csv")
            last = [row for row in rows if row["ranker"] == other][-1]
            self.assertEqual(last["trials"], "5")
            self.assertLess(abs(sign * float(last["mean"]) - 0.02), 0.012)
            # The spread of seeds is 0.03, that of paired differences 0.006: 2.776 * 0.006 / sqrt(5).
            self.assertLess(float(last["high"]) - float(last["low"]), 0.03)

    def test_online_ndcg_begins_with_the_first_list(self):
        experiment = write_experiment(self.folder / "e", seeds=(1, 2))
        self.report(experiment, "--figures", self.folder / "f")
        for figure, first in (("ndcg", 100), ("cndcg", 0)):
            rows = rows_of(self.folder / "f" / f"perfect-online-{figure}.csv")
            self.assertEqual(min(int(row["round"]) for row in rows), first)

    def test_a_figure_with_one_x_is_not_drawn(self):
        experiment = write_experiment(self.folder / "e", [ranker("alone")], seeds=(1,), unfinished=[("alone", "perfect", 1, 1)],
                                      evaluations=2)
        self.page(experiment, "--figures", self.folder / "f")
        self.assertEqual(list((self.folder / "f").glob("*.svg")), [])

    def test_names_and_numbers_are_readable(self):
        rankers = [ranker("a-ranker-with-quite-a-long-name+alpha=0.001+lambda=100"),
                   ranker("a-ranker-with-quite-a-long-name+alpha=0.01+lambda=100")]
        experiment = write_experiment(self.folder / "e", rankers, rounds=12000, data={"source": "/far/away/from/here/clicks"})
        page = self.page(experiment)
        self.says(page, "12,000 rounds", "2,000 documents", "on clicks")
        for value in ("0.001", "0.01"):  # in the labels at the ends of lines
            self.assertRegex(page.text, r"…[^\n]*=" + re.escape(value) + r"[^0-9\n]*…")
        self.assertIn("/far/away/from/here/clicks", [value for _, name, value in page.attributes if name == "title"])
        self.assertNotRegex(page.text, r"[ (>]-[0-9]")  # a hyphen in place of a minus sign

    def test_findings_come_first_and_skylines_are_never_best(self):
        """Six seeds find a difference of 0.05 with a spread of 0.006."""
        rankers = [ranker("first"), ranker("second"), ranker("labels", "lambdarank-labels")]
        experiment = write_experiment(self.folder / "e", rankers, seeds=range(1, 7), height=[0.45, 0.40, 0.60])
        lines = self.report(experiment).stdout.splitlines()
        self.assertEqual(lines[0], "perfect user: first is best offline and online.")
        self.assertIn("labels, trained on true grades, has 0.", lines[1])
        figures, _ = self.figures(experiment)
        for measure in ("offline-ndcg", "online-cndcg", "regret"):
            self.assertEqual([figures["made-up", "perfect", measure, name]["best"] for name in ("first", "second", "labels")],
                             [True, False, False], measure)

    def test_a_run_writes_its_page_with_the_machine_and_the_duration(self):
        done = olrank("run", "--data", "synth:small", "--ranker", "pdgd", "--rounds", 20, "--seeds", "1-2", "--clicks",
                      "perfect", "--out", self.folder / "e")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(self.folder / "e" / "report.html"), done.stderr)
        cpu = json.loads((self.folder / "e" / "manifest.json").read_text())["cpu"]
        page = Reader((self.folder / "e" / "report.html").read_text())
        self.says(page, cpu + "; cpu", "Duration", "in 2 trials, ", "2 of 2 trials finished")
        self.assertRegex(json.loads((trial_folder(self.folder / "e", "pdgd", "perfect", 1, 1) / "summary.json").read_text())
                         ["finished"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")


class Study(Report):
    def test_begins_with_what_the_tests_say(self):
        write_study(self.folder / "s", seeds=range(1, 9), users=("perfect", "informational"))
        done = self.report(self.folder / "s")
        page = (self.folder / "s" / "report.html").read_text()
        headline = "Every other structure is significantly worse than full in offline and online NDCG@10."
        self.assertEqual(page.count(f"<strong>{headline}</strong>"), 2)
        self.assertIn("perfect user: " + headline, done.stdout)
        self.assertIn("8 seeds show differences of ", done.stdout)
        self.assertIn("diagonal − full over 2 sizes: offline NDCG@10 −0.0", done.stdout)

    def test_names_the_structures_that_differ(self):
        structures = ("full", "diagonal", "none")
        write_study(self.folder / "s", structures, seeds=range(1, 9), height=[0.45, 0.4501, 0.41, 0.45, 0.4501, 0.47])
        printed = self.report(self.folder / "s").stdout
        self.assertIn("Significantly better than full in offline and online NDCG@10: none (m = 32). Significantly worse than full "
                      "in offline and online NDCG@10: none (m = 16).", printed)
        self.assertRegex(printed, "diagonal − full over 2 sizes: [^;]*, never significant;")
        self.assertRegex(printed, "none − full over 2 sizes: [^;]*; ")

    def test_one_seed_and_no_full_covariance(self):
        write_study(self.folder / "one", seeds=(1,))
        self.assertIn("One seed cannot tell structures apart.", self.report(self.folder / "one").stdout)
        write_study(self.folder / "none", structures=("diagonal", "none"))
        self.assertIn("No structure shares finished trials with full yet.", self.report(self.folder / "none").stdout)
        self.assertNotIn("nan", self.page(self.folder / "none").text)


class Unfinished(Report):
    def test_lists_missing_trials(self):
        write_experiment(self.folder / "e", seeds=range(1, 7), unfinished=[("pdgd", "perfect", 1, 2)],
                         not_started=[("pairrank", "perfect", 1, seed) for seed in (3, 4, 6)])
        page = self.page(self.folder / "e")
        self.says(page, "8 of 12 trials finished", "pdgd, perfect, fold 1: seed 2 has reached round 400",
                  "pairrank, perfect, fold 1: seeds 3 to 4, 6 not started",
                  "pdgd: from round 500 on, the mean covers 5 trials instead of 6")

    def test_no_trial_has_started(self):
        write_experiment(self.folder / "e", seeds=(1,), not_started=[(name, "perfect", 1, 1) for name in ("pairrank", "pdgd")])
        page = self.page(self.folder / "e")
        self.says(page, "0 of 2 trials finished", "No trial with this user has started")

    def test_tables_fit_the_columns(self):
        experiment = write_experiment(self.folder / "e", [ranker("a-ranker-with-a-name-of-forty-characters-1"),
                                                          ranker("a-ranker-with-a-name-of-forty-characters-2")])
        def table(*flags):
            return olrank("report", experiment, *flags, env=os.environ | {"COLUMNS": "80"}).stdout.splitlines()

        for line in table():
            self.assertLessEqual(len(line), 80, line)
        self.assertTrue(any("--wide" in line for line in table()))
        self.assertTrue(any("rounds/s" in line and len(line) > 80 for line in table("--wide")))


class Comparison(Report):
    def test_names_differences_and_distinguishes_rankers(self):
        write_experiment(self.folder / "a", [ranker("same"), ranker("other", alpha=0.1)])
        write_experiment(self.folder / "b", [ranker("same"), ranker("other", alpha=0.2)], protocol={"discount": 0.9})
        page = self.page(self.folder / "a", self.folder / "b", "--out", self.folder / "c", at=self.folder / "c")
        self.says(page, "a and b differ in protocol.discount: '0.9995' and '0.9'.")
        self.says(page, "same (a)")  # the protocols differ, so these are different rankers
        self.assertFalse((self.folder / "a" / "report.html").exists())
        self.assertFalse((self.folder / "a" / "summary.csv").exists())

    def test_joins_the_trials_of_one_ranker_in_two_folders(self):
        write_experiment(self.folder / "a", [ranker("same")], seeds=(1, 2))
        write_experiment(self.folder / "b", [ranker("same"), ranker("new")], seeds=(2, 3))
        self.report(self.folder / "a", self.folder / "b", "--out", self.folder / "c", "--json", self.folder / "r.json")
        results = json.loads((self.folder / "r.json").read_text())
        rows = {row["ranker"]: row["trials"] for row in results["results"][0]["final"][0]["rankers"]}
        self.assertEqual(rows, {"same": 3, "new": 2})
        self.assertEqual(results["warnings"], ["trials/same/perfect/fold1/seed2 of b is also in a; only the trial in a counts."])

    def test_keeps_data_sets_separate(self):
        write_experiment(self.folder / "a", fingerprint="aa")
        write_experiment(self.folder / "b", fingerprint="bb")
        page = self.page(self.folder / "a", self.folder / "b", "--out", self.folder / "c", at=self.folder / "c")
        self.says(page, "a and b have different data in fold 1.", "on made-up (b)")


class BadInput(Report):
    def refused(self, code, sentence, *arguments):
        super().refused(code, sentence, "report", *arguments)

    def test_damaged_lines_end_a_curve_with_a_warning(self):
        experiment = write_experiment(self.folder / "e", seeds=(1, 2, 3))
        damaged = trial_folder(experiment, "pdgd", "perfect", 1, 2) / "curve.jsonl"
        lines = damaged.read_text().splitlines(keepends=True)
        for text, word, number in (("".join(lines[:4]) + "{\"round\": oops}\n" + "".join(lines[5:]), "not a valid evaluation", 5),
                                   ("".join(lines)[:-20], "incomplete", 11),
                                   ("".join(lines[:6]) + lines[2], "out of order", 7)):
            damaged.write_text(text)
            done = self.report(experiment)
            place = f"{damaged}:{number}: This line is"
            self.assertIn(place, done.stderr)
            self.assertIn(word, done.stderr)
            page = Reader((experiment / "report.html").read_text())
            self.says(page, place, "covers 2 trials instead of 3")

    def test_added_metrics_have_curves_figures_and_final_values(self):
        experiment = write_experiment(self.folder / "e", seeds=(1, 2, 3))
        for name, level in (("pairrank", 0.4), ("pdgd", 0.3)):
            for seed in (1, 2, 3):
                def add_metrics(_, point, level=level + 0.01 * seed):
                    point["metrics"] = {"map": level, "ndcg@5": 0.5, "ndcg@10": point["offline"]["ndcg@10"]}

                change_evaluations(trial_folder(experiment, name, "perfect", 1, seed), add_metrics)
        figures, results = self.figures(experiment, "--figures", self.folder / "f")
        row = figures[("made-up", "perfect", "offline-map", "pairrank")]
        self.assertAlmostEqual(row["mean"], 0.42)
        self.assertTrue(row["best"])
        self.assertFalse(figures[("made-up", "perfect", "offline-map", "pdgd")]["not_significantly_worse"])
        self.assertFalse([key for key in figures if key[2] == "offline-ndcg-at-10"])  # the main measure already
        curves = {(entry["ranker"], entry["figure"]) for entry in results["results"][0]["curves"]}
        self.assertIn(("pdgd", "offline-ndcg-at-5"), curves)
        for slug in ("offline-map", "offline-ndcg-at-5"):
            self.assertTrue((self.folder / "f" / f"perfect-{slug}.svg").is_file(), slug)
        self.says(Reader((experiment / "report.html").read_text()), "Offline MAP", "Offline NDCG@5")

    def test_folders_without_an_experiment(self):
        (self.folder / "empty").mkdir()
        self.refused(2, "is not an experiment folder: it has no manifest.json", self.folder / "empty")
        self.refused(2, f"The experiment folder '{self.folder / 'nowhere'}' does not exist.", self.folder / "nowhere")
        self.refused(2, "No experiment given")
        (self.folder / "empty" / "manifest.json").write_text("{}")
        self.refused(1, "This file is not an experiment manifest.", self.folder / "empty")
        self.assertEqual([path.name for path in (self.folder / "empty").iterdir()], ["manifest.json"])

    def test_a_damaged_summary(self):
        """One of six is left out of the report, its table and its page."""
        experiment = write_experiment(self.folder / "e")
        summary = trial_folder(experiment, "pdgd", "perfect", 1, 2) / "summary.json"
        for text in ("{\"ranker\":", "", "[]", "{\"last\": {\"offline\": {\"ndcg@x\": 1}}}"):
            summary.write_text(text)
            done = self.report(experiment, "--csv", self.folder / "r.csv")
            self.assertIn(f"{summary}: This file is not a trial summary; its trial is left out.", done.stderr)
            self.assertEqual(done.stderr.count("not a trial summary"), 1, done.stderr)
            self.assertIn("5 of 6 trials have finished", done.stderr)
            page = Reader((experiment / "report.html").read_text())
            self.says(page, f"{summary}: This file is not a trial summary; its trial is left out.",
                      "pdgd, perfect, fold 1: seed 2 has reached round 1000")
            rows = {row["ranker"]: row["trials"] for row in rows_of(self.folder / "r.csv")
                    if row["figure"] == "offline-ndcg" and not row["round"]}
            self.assertEqual(rows, {"pairrank": "3", "pdgd": "2"})
            self.assertEqual(len((experiment / "summary.csv").read_text().splitlines()), 6)

    def test_users_that_do_not_exist_and_flags_of_earlier_versions(self):
        experiment = write_experiment(self.folder / "e")
        before = sorted(path.name for path in experiment.iterdir())
        figures, latex = self.folder / "f", self.folder / "t.tex"
        self.refused(2, "rsvg-convert -f pdf FILE.svg makes a PDF", experiment, "--figures", figures, "--figures-format", "pdf")
        self.refused(2, "'watch olrank report DIR' shows the report", experiment, "--watch")
        self.refused(2, "must be perfect, not 'perfekt'", experiment, "--latex", latex, "--latex-users", "perfekt")
        self.refused(2, "--latex-users requires --latex FILE", experiment, "--latex-users", "perfect")
        self.assertEqual(sorted(path.name for path in experiment.iterdir()), before)
        self.assertEqual([path.exists() for path in (figures, latex)], [False, False])

    def test_several_folders_require_an_output_folder(self):
        for name in ("a", "b"):
            write_experiment(self.folder / name)
        self.refused(2, "--out DIR", self.folder / "a", self.folder / "b")

    def test_one_ranker_only(self):
        page = self.page(write_experiment(self.folder / "e", [ranker("alone")]))
        self.says(page, "With a single ranker there is nothing to compare.")

    def test_constant_curves(self):
        experiment = write_experiment(self.folder / "e")
        for file in experiment.rglob("curve.jsonl"):
            change_evaluations(file.parent, lambda _, point: point.update(
                offline={"ndcg@10": 0}, online={"ndcg@10": 0.5, "cndcg@10": 0, "regret": 3}))
        self.report(experiment)
        self.assertEqual(re.findall(r"\b(nan|inf)\b", (experiment / "report.html").read_text()), [])

    def test_json_goes_to_stdout_or_to_a_file(self):
        experiment = write_experiment(self.folder / "e")
        alone = [self.report(*order).stdout for order in ((experiment, "--json"), ("--json", experiment))]
        self.assertEqual(alone[0], alone[1])
        self.assertEqual(json.loads(olrank("--json", "report", experiment).stdout), json.loads(alone[0]))
        self.report(experiment, "--json", self.folder / "r.json")
        self.assertEqual((self.folder / "r.json").read_text(), alone[0])


@unittest.skipUnless(shutil.which("pdflatex") and not subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode,
                     "requires pdflatex and booktabs, of Debian's packages texlive-latex-base and texlive-latex-recommended")
class Latex(Report):
    def test_tables_compile_and_fit_their_column(self):
        """Names are those that people give, and that no one should."""
        users = ("perfect", "navigational", "informational")
        odd = [ranker(name) for name in ("50%_$x^2 {a&b}#~\\<>|\"", "--α=0.1 ν² naïve 学", "full",
                                         "olranknet-with-quite-a-long-name+alpha=0.001+lambda=100_and-more")]
        plain = write_experiment(self.folder / "plain", seeds=range(1, 6), users=users)
        other = write_experiment(self.folder / "other", seeds=(1, 2), folds=(1, 2, 3), fingerprint="bb", height=[0.3, 0.2],
                                 data={"source": "a/very_long_path/to/data/of/another/kind/MSLR-WEB30K"})
        for arguments in (
            [plain], [plain, "--latex-users", ",".join(users), "--latex-users", "informational"],
            [write_experiment(self.folder / "odd", odd, seeds=range(1, 4), users=("a_user&b",), data={"source": "runs/" + "very_long-folder/" * 6})],
            [write_experiment(self.folder / "single", [ranker("alone")], seeds=(1,))], [plain, other, "--latex-users", "perfect"],
            [write_experiment(self.folder / "unfinished", seeds=(1, 2), not_started=[("pdgd", "perfect", 1, seed) for seed in (1, 2)])],
        ):
            self.report("--quiet", *arguments, "--out", self.folder / "out", "--latex", self.folder / "table.tex")
            text = (self.folder / "table.tex").read_text()
            labels = re.findall(r"\\label\{([^}]*)\}", text)
            self.assertTrue(labels and len(labels) == len(set(labels)) == text.count("\\caption"), labels)
            references = ", ".join(f"Table~\\ref{{{label}}}" for label in labels)
            (self.folder / "a.tex").write_text("\\documentclass[twocolumn]{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
                                               f"\\input{{table}}\nSee {references}.\n\\end{{document}}\n")
            for _ in range(2):  # the second run knows the labels
                done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"], cwd=self.folder,
                                      capture_output=True, text=True, errors="replace", timeout=900)
            self.assertEqual(done.returncode, 0, done.stdout[-1500:])
            faults = re.findall(r"Overfull \\hbox.*|LaTeX Warning: (?:Reference|Label).*|Missing character.*", done.stdout)
            self.assertEqual(faults, [], arguments)


if __name__ == "__main__":
    unittest.main()
