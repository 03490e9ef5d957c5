"""Includes point one way: between folders, apps → jobs ← library, jobs → {sim, models, report, recommend} → core ← cuda, report → sim,
studies and bench on jobs, and serve and library on logs, which stands on jobs; and between the folders of core, along the edges that docs/evidence/OPERATIONS.md lists, without a cycle;
and between the rooms of models in one order."""

import pathlib
import re
import sys

from tracked_files import sources

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
PARTS = pathlib.Path("docs/evidence/OPERATIONS.md").read_text().partition("\n## Parts of core\n")[2].partition("\n## ")[0]
ALLOWED_IN_CORE = {part: set(re.findall(r"`([a-z_]+)`", others))
                   for part, others in re.findall(r"^\| `core/([a-z_]+)` \|.*\| ([^|]+) \|$", PARTS, re.MULTILINE)}


def cycle(edges):
    """The folders of a cycle, or None."""
    done = set()

    def visit(folder, path):
        if folder in path:
            return [*path[path.index(folder):], folder]
        if folder in done:
            return None
        found = next(filter(None, (visit(other, [*path, folder]) for other in sorted(edges[folder]))), None)
        done.add(folder)
        return found

    return next(filter(None, (visit(folder, []) for folder in sorted(edges))), None)


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


def complaints():
    if found := cycle(ALLOWED_IN_CORE):
        yield f"core's folders may include each other in a circle: {' → '.join(found)}"
    for path in sources():
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


found = list(complaints())
checked = len(sources())
print("\n".join(found) or f"{checked} files include in the right direction")
if checked < 20:
    sys.exit("too few files were found: this check looks at nothing")
sys.exit(1 if found else 0)
