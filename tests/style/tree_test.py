"""The tree keeps its rules. Includes point one way: between folders, apps → jobs ← library, jobs → {sim, models, report, recommend} →
core ← cuda, report → sim, studies and bench on jobs, and serve and library on logs, which stands on jobs; between the folders of core,
along the edges that docs/evidence/OPERATIONS.md lists, without a cycle; and between the rooms of models in one order. The tests of a
folder are in the folder of the same name under tests/. The table of operations in docs/evidence/OPERATIONS.md is the tree's. Every
place that states the version has that of CMakeLists.txt."""

import graphlib
import pathlib
import re
import sys

from tracked_files import sources, tracked

SOURCES = sources()
OPERATIONS = pathlib.Path("docs/evidence/OPERATIONS.md")
# The other folders that each folder may include.
ALLOWED = {
    "core": set(),
    "cuda": {"core"},
    "models": {"core"},
    "sim": {"core"},
    "recommend": {"core"},
    "report": {"core", "sim"},
    "jobs": {"core", "models", "recommend", "report", "sim"},
    "logs": {"core", "jobs", "models", "report", "sim"},
    "serve": {"core", "jobs", "logs", "models", "sim"},
    "studies": {"core", "jobs", "models", "report"},
    "library": {"core", "jobs", "logs", "models", "report"},
    "apps": {"bench", "core", "jobs", "logs", "models", "recommend", "report", "serve", "sim", "studies"},
    "bench": {"core", "cuda", "jobs", "library", "logs", "models", "recommend", "report", "serve", "sim", "tests"},
    "examples": set(),
    "python": set(),
    "tests": {"core", "cuda", "jobs", "logs", "models", "recommend", "report", "serve", "sim", "apps", "bench", "library", "studies"},
}
# The rooms of models, the lowest first: each may include those before it. The files of models itself name the kinds: they may
# include every room, and a room only the table of kinds.
ROOMS = ["posterior", "skeleton", "modules", "linear", "neural", "labels", "baselines", "files", "clickgp", "export"]
KINDS = "ranker_kinds.h"
PUBLIC_HEADERS = "library"  # holds olrank/, the prefix that installed headers have
EMULATION = ("tests", "cuda", "emulation")
OURS = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/([^"]+)"')
TORCH = re.compile(r"^\s*#\s*include\s+[<\"](torch|ATen|c10)/")
CUDA = re.compile(r"^\s*#\s*include\s+[<\"](cuda|cublas|cusolver|cub/|nvtx)")
# The other folders of core that each folder of core may include. Every one may include the files of core itself.
PARTS = OPERATIONS.read_text().partition("\n## Parts of core\n")[2].partition("\n## ")[0]
ALLOWED_IN_CORE = {part: set(re.findall(r"`([a-z_]+)`", others))
                   for part, others in re.findall(r"^\| `core/([a-z_]+)` \|.*\| ([^|]+) \|$", PARTS, re.MULTILINE)}


def complaint_within(parent, folder, included):
    """About a file in parent/folder that includes parent/included, where the parent is core or models."""
    other = included.split("/")[0]
    if folder not in (ALLOWED_IN_CORE if parent == "core" else ROOMS):
        return f"{parent}/{folder} is missing in the table of what it may include"
    if "/" not in included:
        allowed = parent == "core" or included == KINDS
    else:
        allowed = other == folder or other in (ALLOWED_IN_CORE[folder] if parent == "core" else ROOMS[: ROOMS.index(folder)])
    return None if allowed else f"{parent}/{folder} must not include {parent}/{other}"


def includes():
    """Includes point one way, and core's folders have no circle."""
    try:
        graphlib.TopologicalSorter(ALLOWED_IN_CORE).prepare()
    except graphlib.CycleError as error:
        yield f"core's folders may include each other in a circle: {' → '.join(reversed(error.args[1]))}"
    for path in SOURCES:
        folder = path.parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            place = f"{path}:{number}"
            if match := OURS.match(line):
                other = PUBLIC_HEADERS if match[1] == "olrank" else match[1]
                if other not in ALLOWED:
                    yield f"{place}: '{other}/' is not a folder of this project"
                elif other != folder and other not in ALLOWED[folder]:
                    yield f"{place}: {folder} must not include {other}"
                elif folder == other and folder in ("core", "models") and len(path.parts) > 2:
                    if complaint := complaint_within(folder, path.parts[1], match[2]):
                        yield f"{place}: {complaint}"
                # The tests of the emulation compile the twin of one.
                if match[2].endswith(".cuh") and folder != "cuda" and path.parts[:3] != EMULATION:
                    yield f"{place}: only files in cuda/ may include .cuh files"
            elif TORCH.match(line):
                if path.suffix in (".cu", ".cuh") or folder in ("core", "recommend", "report", "sim", "cuda"):
                    yield f"{place}: {folder}{path.suffix} must not include LibTorch headers"
            elif CUDA.match(line) and path.suffix == ".h" and folder != "cuda":
                yield f"{place}: headers outside cuda/ must not need CUDA"


# Folders that test no single folder of the product.
ELSEWHERE = {"attack", "examples", "fuzz", "scripts", "style", "support", "trials"}
# The emulation of a device belongs to the tests; it has tests of its own.
TOOLS_OF_TESTS = {pathlib.Path("cuda/emulation")}


def mirror():
    tests = [path for path in tracked(".cpp", ".py") if path.parts[0] == "tests" and path.stem.endswith("_test")]
    for path in tests:
        folder = path.parent.relative_to("tests")
        if not folder.parts or folder.parts[0] in ELSEWHERE or folder in TOOLS_OF_TESTS:
            continue
        if not folder.is_dir():
            yield f"{path}: there is no folder {folder}"
        # A test named after a file in another folder of the same component is in the wrong place.
        subject = path.stem.removesuffix("_test")
        places = {source.parent for suffix in (".h", ".cpp", ".cu", "_cpu.cpp") for source in
                  pathlib.Path(folder.parts[0]).rglob(subject + suffix)}
        if path.suffix == ".cpp" and places and not {folder, folder.parent} & places:
            yield f"{path}: {subject} is in {', '.join(sorted(map(str, places)))}"
    if len(tests) < 20:
        yield f"only {len(tests)} tests were found"


COLUMNS = ["operation", "formula", "CPU", "kernel", "tests", "benchmarks"]


def operations():
    """Every file that the table names exists, every CPU file of core/ops and every file of kernels in cuda/ops is in it, a file of
    kernels under its own stem, beside which it may hold other operations, and every benchmark that it names has a case of the operation."""
    section = OPERATIONS.read_text().split("## Operations\n", 1)[1].split("\n## ", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    if cells[0] != COLUMNS or len(cells) < 12:
        yield f"the table has {len(cells)} lines, and its columns are {', '.join(cells[0])}, not {', '.join(COLUMNS)}"
    rows = [dict(zip(COLUMNS, (re.findall(r"`([^`]+)`", cell) for cell in row))) for row in cells[2:]]
    names = [row["operation"][0] for row in rows]
    own_kernels = {path for name, row in zip(names, rows) for path in row["kernel"] if pathlib.Path(path).stem == name}
    if names != sorted(set(names)):
        yield "operations must be in alphabetical order, each once"
    for name, row in zip(names, rows):
        for column in COLUMNS[1:]:
            for path in row[column]:
                if not pathlib.Path(path).is_file():
                    yield f"{name}: {path} does not exist"
                elif column == "benchmarks" and f'"{name}/' not in pathlib.Path(path).read_text():
                    yield f"{name}: {path} has no case of it"
        for path in row["kernel"]:
            if pathlib.Path(path).stem != name and path not in own_kernels:
                yield f"{name}: {path} has another stem"
        if not row["CPU"] and not row["kernel"]:
            yield f"{name} has neither a CPU file nor a kernel"
        for column in ("tests", "benchmarks"):
            if not row[column]:
                yield f"{name} has no {column}"
    for column, pattern in (("CPU", "core/ops/*_cpu.cpp"), ("kernel", "cuda/ops/*.cu")):
        listed = {path for row in rows for path in row[column]}
        for path in sorted(map(str, pathlib.Path(".").glob(pattern))):
            if path not in listed:
                yield f"{path} is missing from the table"


VERSION = re.search(r"^project\(olrank VERSION ([\d.]+)", pathlib.Path("CMakeLists.txt").read_text(), re.M)[1]
MINOR = VERSION.rpartition(".")[0]
# Where each place states it, and the least number of such places.
PLACES = (
    ("CHANGELOG.md", r"\A(?:(?!^## \d).*\n)*## ([\d.]+)", VERSION, 1),
    ("pyproject.toml", r"olrank-torch==([\d.]+)", VERSION, 1),
    ("deploy/helm/olrank/Chart.yaml", r"^version: ([\d.]+)$", VERSION, 1),
    ("deploy/conda/recipe.yaml", r"^  version: \"([\d.]+)\"$", VERSION, 1),
    ("library/olrank/*.h", r"version of the library, such as \"([\d.]+)\"", VERSION, 2),
    ("examples/*/CMakeLists.txt", r"find_package\(olrank ([\d.]+)", MINOR, 3),
    ("docs/*.md", r"find_package\(olrank ([\d.]+)", MINOR, 1),
)


def versions():
    for pattern, statement, expected, least in PLACES:
        stated = [(path, match[1]) for path in sorted(pathlib.Path(".").glob(pattern)) for match in re.finditer(statement, path.read_text(), re.M)]
        if len(stated) < least:
            yield f"{pattern}: {len(stated)} versions were found where at least {least} are expected"
        yield from (f"{path}: the version is {number}, not {expected}" for path, number in stated if number != expected)


found = [f"{check.__name__}: {complaint}" for check in (includes, mirror, operations, versions) for complaint in check()]
if len(SOURCES) < 20:
    found.append("too few files were found: this check looks at nothing")
print("\n".join(found) or f"{len(SOURCES)} files keep the rules")
sys.exit(1 if found else 0)
