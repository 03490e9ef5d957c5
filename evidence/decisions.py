"""Takes what the tests of arms, of off-policy estimates and of click models measure into the records of the pages that quote it.

evidence/decisions.py BUILD    such as build/cpu; then evidence/pages.py writes the pages"""

import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import records

USUAL = {"name", "file", "line", "status", "result", "timestamp", "time", "classname"}  # of a test's report


def properties(program, tests):
    """Returns what each of the tests recorded, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.json")
        subprocess.run([program, f"--gtest_filter={':'.join(tests)}", f"--gtest_output=json:{out}"], check=True, stdout=subprocess.DEVNULL)
        cases = [case for suite in json.loads(out.read_text())["testsuites"] for case in suite["testsuite"]]
    assert len(cases) == len(tests), (tests, cases)
    return {case["name"]: {key: value for key, value in case.items() if key not in USUAL} for case in cases}


def table(page, name, header, rows):
    record = records.read("pages", page) or {}
    record.setdefault("tables", {})[name] = {"origin": "evidence/decisions.py", "recorded": datetime.date.today().isoformat(), "header": header, "rows": rows}
    records.write("pages", page, record)


def count(number):
    return f"{int(number):,}"


def click_models(tests):
    models = ("pbm", "cascade", "dcm", "dbn", "ubm", "twotower")
    found = properties(tests / "clicks_test", [f"Models/ClickFitTest.RecoversItsParameters/{model}" for model in models])
    rows = []
    for model in models:
        errors = found[f"RecoversItsParameters/{model}"]
        row = ["`two-tower`" if model == "twotower" else f"`{model}`"]
        for lists in (2000, 32000):
            row += [f"{float(errors[f'attraction_{lists}']):.3f}", "–" if model == "cascade" else f"{float(errors[f'reading_{lists}']):.3f}"]
        rows.append(row)
    table("DECISIONS", "clicks", ["model", "attraction, 2,000 lists", "reading, 2,000 lists", "attraction, 32,000 lists", "reading, 32,000 lists"], rows)


def main(build):
    tests = pathlib.Path(build, "bin", "tests")
    click_models(tests)
    statistics = properties(tests / "statistics_test", [
        "AnytimeIntervalTest.PeekingAfterEachListFindsNoDifferenceBetweenEqualArms",
        "AnytimeIntervalTest.FindsADifferenceInUpToThreeTimesTheListsOfATestThatLooksOnce",
        "SlateEstimatesTest.IntervalsCoverTheTruth",
        "SlateEstimatesTest.SpreadLessTheMoreListsThereAre",
        "SlateEstimatesTest.ACorrectedModelIsRightWhereItIsWrong"])
    alarms = statistics["PeekingAfterEachListFindsNoDifferenceBetweenEqualArms"]
    table("PRODUCTION", "alarms", ["users of the second arm", "differences found in 1,000 tests of equal arms"],
          [["50 %", alarms["even"]], ["5 %", alarms["uneven"]]])
    times = statistics["FindsADifferenceInUpToThreeTimesTheListsOfATestThatLooksOnce"]
    table("PRODUCTION", "times", ["the second arm gets more by", "lists, looking after each", "lists of a test that looks once"],
          [[f"{percent} %", count(times[f"anytime_{percent}"]), count(times[f"once_{percent}"])] for percent in (2, 5, 10)])
    spreads = statistics["SpreadLessTheMoreListsThereAre"]
    rows = []
    for estimator in ("ips", "rips", "snips", "snrips"):
        row = [f"`{estimator}`"]
        for lists in (100, 400, 1600):
            bias, spread, covered = spreads[f"{estimator}_{lists}"].split()
            row.append(f"{float(bias):+.3f} / {float(spread):.3f} / {covered} %".replace("-", "−"))
        rows.append(row)
    table("DECISIONS", "spreads", ["estimate", "100 lists", "400 lists", "1,600 lists"], rows)

    covered = statistics["IntervalsCoverTheTruth"]
    table("DECISIONS", "coverage", ["estimate", "logs whose interval has the true value", "and the true difference"],
          [[f"`{estimator}`", *(f"{100 * int(logs) / 300:.1f} %" for logs in covered[f"covered_{estimator}"].split())]
           for estimator in ("ips", "rips", "snips", "snrips")])
    models = statistics["ACorrectedModelIsRightWhereItIsWrong"]
    rows = []
    for estimator in ("direct", "corrected"):
        row = ["`direct`" if estimator == "direct" else "`cascade-dr`"]
        for model in ("right", "wrong"):
            told = models[f"{estimator}_{model}"].split()
            row.append((f"{float(told[0]):+.3f}" + (f" / {float(told[1]):.3f} / {round(int(told[2]) / 3)} %" if told[1:] else " / 0 / –")).replace("-", "−"))
        rows.append(row)
    table("DECISIONS", "corrected", ["estimate", "right model", "wrong model"], rows)

    promotion = properties(tests / "serve_test", [
        "PromotionTest.AWorseLearnerCostsLessThanAHundredthOfTheClicks",
        "PromotionTest.ABetterLearnerHasAllThatTheHoldoutLeavesWithin20000Lists",
        "PromotionTest.ALearnerThatGoesWrongFallsBackWithin2000Lists"])

    def span(name):
        lists = [int(promotion[name][f"lists_of_seed_{seed}"]) for seed in range(1, 11)]
        return f"{min(lists):,} to {max(lists):,}"

    worst = max(float(value) for value in promotion["AWorseLearnerCostsLessThanAHundredthOfTheClicks"].values())
    table("PRODUCTION", "promotions", ["the learner gets", "ten runs"], [
        ["half of the incumbent's clicks for 2,000 lists, and as many from then on", f"cost at most {worst:.2f} % of the clicks of 10,000 lists"],
        ["15 % more clicks", f"all that the holdout leaves after {span('ABetterLearnerHasAllThatTheHoldoutLeavesWithin20000Lists')} lists"],
        ["half of the clicks, after it was promoted", f"0 % after {span('ALearnerThatGoesWrongFallsBackWithin2000Lists')} lists"]])


if __name__ == "__main__":
    main(sys.argv[1])
