"""Tests mirror the tree: the tests of a folder are in the folder of the same name under tests/."""

import pathlib
import sys

from tracked_files import tracked

# Folders that test no single folder of the product.
ELSEWHERE = {"attack", "examples", "fuzz", "scripts", "style", "support", "trials"}
# The emulation of a device belongs to the tests; it has tests of its own.
TOOLS_OF_TESTS = {pathlib.Path("cuda/emulation")}

wrong = []
tests = [path for path in tracked(".cpp", ".py") if path.parts[0] == "tests" and path.stem.endswith("_test")]
for path in tests:
    folder = path.parent.relative_to("tests")
    if not folder.parts or folder.parts[0] in ELSEWHERE or folder in TOOLS_OF_TESTS:
        continue
    if not folder.is_dir():
        wrong.append(f"{path}: there is no folder {folder}")
    # A test named after a file in another folder of the same component is in the wrong place.
    subject = path.stem.removesuffix("_test")
    places = {source.parent for suffix in (".h", ".cpp", ".cu", "_cpu.cpp") for source in
              pathlib.Path(folder.parts[0]).rglob(subject + suffix)}
    if path.suffix == ".cpp" and places and not {folder, folder.parent} & places:
        wrong.append(f"{path}: {subject} is in {', '.join(sorted(map(str, places)))}")
if not tests:
    sys.exit("no test was found")
if wrong:
    sys.exit("tests that do not mirror the tree:\n" + "\n".join(wrong))
print(f"{len(tests)} tests mirror the tree")
