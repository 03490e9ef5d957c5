"""The version is CMakeLists.txt's: every other place that states it has the same one."""

import pathlib
import re
import sys

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

found = []
for pattern, statement, expected, least in PLACES:
    stated = [(path, match[1]) for path in sorted(pathlib.Path(".").glob(pattern)) for match in re.finditer(statement, path.read_text(), re.M)]
    if len(stated) < least:
        found.append(f"{pattern}: {len(stated)} versions were found where at least {least} are expected")
    found += [f"{path}: the version is {number}, not {expected}" for path, number in stated if number != expected]
print("\n".join(found) or f"every place states {VERSION}")
sys.exit(1 if found else 0)
