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
# The other folders of core that each folder of core may include. Every one may include the files of core itself.
ALLOWED_IN_CORE = {
    "clicks": {"math", "settings"},
    "data": {"io", "math", "random", "runtime", "settings", "text"},
    "device": {"covariance", "data", "explore", "io", "online", "ops", "random", "runtime", "settings"},
    "explore": {"math", "random", "runtime", "settings"},
    "feedback": {"data", "fair", "io", "math", "online", "random", "settings", "text"},
    "io": {"text"},
    "covariance": {"online", "random", "runtime"},
    "math": set(),
    "metrics": {"data", "io", "math", "runtime", "settings", "text"},
    "fair": {"data", "explore", "io", "metrics", "random", "settings"},
    "online": {"data", "explore", "fair", "io", "random", "runtime"},
    "ops": {"data", "math", "random", "runtime", "settings"},
    "random": {"math"},
    "runtime": set(),
    "settings": {"io", "text"},
    "statistics": {"math", "random", "settings"},
    "text": set(),
}
# The rooms of models, the lowest first: each may include those before it. The files of models itself name the kinds: they may
# include every room, and a room only the table of kinds.
ROOMS = ["posterior", "skeleton", "modules", "linear", "neural", "labels", "baselines", "files", "clickgp", "export"]
KINDS = "ranker_kinds.h"
DOCUMENT = pathlib.Path("docs/evidence/OPERATIONS.md")
PUBLIC_HEADERS = "library"  # holds olrank/, the prefix that installed headers have
EMULATION = ("tests", "cuda", "emulation")
OURS = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/([^"]+)"')
TORCH = re.compile(r"^\s*#\s*include\s+[<\"](torch|ATen|c10)/")
CUDA = re.compile(r"^\s*#\s*include\s+[<\"](cuda|cublas|cusolver|cub/|nvtx)")
PART = re.compile(r"^\| `core/([a-z_]+)` \|.*\| ([^|]+) \|$")


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


def complaints_about_edges():
    if found := cycle(ALLOWED_IN_CORE):
        yield f"core's folders may include each other in a circle: {' → '.join(found)}"
    text = DOCUMENT.read_text()
    section = text[text.index("## Parts of core"):].split("\n## ")[0]
    parts = (PART.match(line) for line in section.splitlines())
    documented = {part[1]: set(re.findall(r"`([a-z_]+)`", part[2])) for part in parts if part}
    for folder in sorted(ALLOWED_IN_CORE.keys() | documented.keys()):
        if ALLOWED_IN_CORE.get(folder) != documented.get(folder):
            yield f"{DOCUMENT}: 'Parts of core' and {pathlib.Path(__file__).name} differ on what core/{folder} may include"


def complaint_in_core(folder, included):
    """About a file in core/<folder> that includes core/<included>."""
    other = included.split("/")[0]
    if "/" not in included or other == folder:
        return None
    if folder not in ALLOWED_IN_CORE:
        return f"core/{folder} is missing in the table of edges"
    return None if other in ALLOWED_IN_CORE[folder] else f"core/{folder} must not include core/{other}"


def complaint_in_models(room, included):
    """About a file in models/<room> that includes models/<included>."""
    other = included.split("/")[0]
    if room not in ROOMS:
        return f"models/{room} is missing in the order of rooms"
    if "/" not in included:
        return None if included == KINDS else f"models/{room} must not include models/{included}, which stands on it"
    return None if other in ROOMS[: ROOMS.index(room) + 1] else f"models/{room} must not include models/{other}"


def complaints():
    yield from complaints_about_edges()
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
                elif folder == other == "core" and len(path.parts) > 2:
                    if complaint := complaint_in_core(path.parts[1], match[2]):
                        yield f"{place}: {complaint}"
                elif folder == other == "models" and len(path.parts) > 2:
                    if complaint := complaint_in_models(path.parts[1], match[2]):
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
