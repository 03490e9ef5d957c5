"""The table of operations in docs/evidence/OPERATIONS.md is the tree's: every file that it names exists, every CPU file of
core/ops and every file of kernels in cuda/ops is in it, a file of kernels under its own stem, beside which it may hold
other operations, and every benchmark that it names has a case of the operation."""

import pathlib
import re
import sys

PAGE = pathlib.Path("docs/evidence/OPERATIONS.md")
COLUMNS = ["operation", "formula", "CPU", "kernel", "tests", "benchmarks"]
NAMED = re.compile(r"`([^`]+)`")


def table():
    section = PAGE.read_text().split("## Operations\n", 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    if rows[0] != COLUMNS:
        sys.exit(f"{PAGE}: the table's columns are {', '.join(rows[0])}, not {', '.join(COLUMNS)}")
    return [dict(zip(COLUMNS, map(NAMED.findall, row))) for row in rows[2:]]


def complaints(rows):
    names = [row["operation"][0] for row in rows]
    own_kernels = {path for name, row in zip(names, rows) for path in row["kernel"] if pathlib.Path(path).stem == name}
    if names != sorted(set(names)):
        yield "operations must be in alphabetical order, each once"
    for name, row in zip(names, rows):
        for column in COLUMNS[1:]:
            for path in row[column]:
                if not pathlib.Path(path).is_file():
                    yield f"{name}: {path} does not exist"
        for path in row["kernel"]:
            if pathlib.Path(path).stem != name and path not in own_kernels:
                yield f"{name}: {path} has another stem"
        if not row["CPU"] and not row["kernel"]:
            yield f"{name} has neither a CPU file nor a kernel"
        for column in ("tests", "benchmarks"):
            if not row[column]:
                yield f"{name} has no {column}"
        for path in row["benchmarks"]:
            if pathlib.Path(path).is_file() and f'"{name}/' not in pathlib.Path(path).read_text():
                yield f"{name}: {path} has no case of it"
    for column, pattern in (("CPU", "core/ops/*_cpu.cpp"), ("kernel", "cuda/ops/*.cu")):
        listed = {path for row in rows for path in row[column]}
        for path in sorted(map(str, pathlib.Path(".").glob(pattern))):
            if path not in listed:
                yield f"{path} is missing from the table"


rows = table()
found = [f"{PAGE}: {complaint}" for complaint in complaints(rows)]
print("\n".join(found) or f"{len(rows)} operations match the tree")
if len(rows) < 10:
    sys.exit(f"{PAGE}: too few operations were found; this check would miss everything")
sys.exit(1 if found else 0)
