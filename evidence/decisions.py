"""Takes what the tests of arms, of off-policy estimates and of click models measure into the records of the pages that quote it.
tables.json names the tests, and the tables with the properties that they recorded.

evidence/decisions.py BUILD    such as build/cpu; then evidence/pages.py writes the pages"""

import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import records
import tables

USUAL = {"name", "file", "line", "status", "result", "timestamp", "time", "classname"}  # of a test's report


def value(text):
    """The number of a property, or its numbers."""
    numbers = [float(part) if "." in part else int(part) for part in text.split()]
    return numbers if len(numbers) > 1 else numbers[0]


def properties(program, tests):
    """Returns what each of the tests recorded, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.json")
        subprocess.run([program, f"--gtest_filter={':'.join(tests)}", f"--gtest_output=json:{out}"], check=True, stdout=subprocess.DEVNULL)
        cases = [case for suite in json.loads(out.read_text())["testsuites"] for case in suite["testsuite"]]
    assert len(cases) == len(tests), (tests, cases)
    return {case["name"]: {key: value(text) for key, text in case.items() if key not in USUAL} for case in cases}


def main(build):
    specification = tables.SPECIFICATIONS["decisions"]
    found = {}
    for program, tests in specification["tests"].items():
        found |= properties(pathlib.Path(build, "bin", "tests", program), tests)
    for table in specification["tables"]:
        record = records.read("pages", table["page"]) or {}
        record.setdefault("tables", {})[table["name"]] = {
            "origin": "evidence/decisions.py", "recorded": datetime.date.today().isoformat(), "header": table["header"],
            "rows": [[tables.fill(cell, found) for cell in row] for row in table["rows"]]}
        records.write("pages", table["page"], record)


if __name__ == "__main__":
    main(sys.argv[1])
