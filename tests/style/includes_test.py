"""Includes between folders point one way: apps → {report, serve, sim, models} → core ← cuda, report → sim, serve →
models."""

import re
import sys

from tracked_files import sources

# What each folder may include, besides itself.
ALLOWED = {
    "core": set(),
    "cuda": {"core"},
    "models": {"core"},
    "sim": {"core"},
    "report": {"core", "sim"},
    "serve": {"core", "models"},
    "library": {"core", "models"},
    "apps": {"core", "models", "report", "serve", "sim"},
    "bench": {"core", "cuda", "models", "report", "serve", "sim", "apps", "tests"},
    "examples": set(),
    "tests": {"core", "cuda", "models", "report", "serve", "sim", "apps", "bench", "library"},
}
EMULATION = ("tests", "cuda", "emulation")
OURS = re.compile(r'^\s*#\s*include\s+"([a-z_]+)/([^"]+)"')
TORCH = re.compile(r"^\s*#\s*include\s+[<\"](torch|ATen|c10)/")
CUDA = re.compile(r"^\s*#\s*include\s+[<\"](cuda|cublas|cusolver|cub/|nvtx)")


def complaints():
    for path in sources():
        folder = path.parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            place = f"{path}:{number}"
            if match := OURS.match(line):
                other = match[1]
                if other not in ALLOWED:
                    yield f"{place}: '{other}/' is no folder of this project"
                elif other != folder and other not in ALLOWED[folder]:
                    yield f"{place}: {folder} must not include {other}"
                # The emulation's tests compile the twin of one.
                if match[2].endswith(".cuh") and folder != "cuda" and path.parts[:3] != EMULATION:
                    yield f"{place}: .cuh files live inside cuda/"
            elif TORCH.match(line):
                if path.suffix in (".cu", ".cuh") or folder in ("core", "report", "sim", "cuda"):
                    yield f"{place}: no LibTorch header in {folder}{path.suffix}"
            elif CUDA.match(line) and path.suffix == ".h" and folder != "cuda":
                yield f"{place}: headers outside cuda/ need no CUDA"


found = list(complaints())
checked = len(sources())
print("\n".join(found) or f"{checked} files include in the right direction")
if checked < 20:
    sys.exit("too few files were found: this check looks at nothing")
sys.exit(1 if found else 0)
