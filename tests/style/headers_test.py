"""Every header compiles alone, and none is missing from the CMake files that see to it.

A header that has changed, or that includes one that has, is compiled alone. The others are compiled by groups, one of each
target, which takes a tenth of the time: there, those that include least come first, so that little is there for a header
that lacks an include. OLRANK_TIDY_BASE=all compiles each alone."""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tracked_files import changed_files, sources

BUILD = pathlib.Path(os.environ["OLRANK_BUILD"])
ROOT = pathlib.Path.cwd()
OWN = re.compile(r'^#include "([^"]+)"', re.M)
# As in CMakeLists.txt, so that the next run compiles nothing that is as before.
CACHED = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "time_macros,include_file_mtime,include_file_ctime"}

commands = [entry for entry in json.loads((BUILD / "compile_commands.json").read_text()) if "_verify_interface_header_sets/" in entry["file"]]
with_cuda = any(entry["file"].endswith("/cuda/runtime/check.h.cxx") for entry in commands)
# The CPU build checks the headers that both builds have, so a CUDA build checks only its own.
wanted = [entry for entry in commands if not with_cuda or "/olrank_cuda_verify_" in entry["file"]]


def header_of(entry):
    """Its target, the name with which it is included, and its place in the checkout."""
    target, name = re.search(r"(\w+)_verify_interface_header_sets/(.*)\.cxx$", entry["file"]).groups()
    return target, name, name if pathlib.Path(name).is_file() else f"library/{name}"


@functools.cache
def included(name):
    """All headers of the checkout that a header includes, directly or not."""
    direct = [other for other in OWN.findall(pathlib.Path(name).read_text()) if pathlib.Path(other).is_file()]
    return {*direct, *(far for other in direct for far in included(other))}


def compile_together(target, entries):
    """The errors of one file that includes them all."""
    folder = BUILD / "header_groups"
    folder.mkdir(exist_ok=True)
    source = folder / f"{target}.cpp"
    names = sorted((len(included(path)), name) for _, name, path in map(header_of, entries))
    source.write_text("".join(f'#include "{name}"\n' for _, name in names))
    command = entries[0]["command"].replace(entries[0]["file"], str(source))
    command = re.sub(r" -o \S+ ", f" -o header_groups/{target}.o ", command)
    cache = "ccache " if shutil.which("ccache") else ""
    return subprocess.run(cache + command, shell=True, cwd=entries[0]["directory"], env={**os.environ, **CACHED}, stderr=subprocess.PIPE,
                          text=True).stderr


base, changed = (None, None) if os.environ.get("OLRANK_TIDY_BASE") == "all" else changed_files()
alone, groups = [], {}
for entry in wanted:
    target, _, path = header_of(entry)
    if base is None or path in changed or any(other in changed for other in OWN.findall(pathlib.Path(path).read_text())):
        alone.append(entry)
    else:
        groups.setdefault(target, []).append(entry)

with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    errors = "".join(pool.map(compile_together, groups, groups.values()))
print(errors[:4000])
if errors:
    sys.exit("headers do not compile together")
if alone:
    objects = [re.search(r" -o (\S+) ", entry["command"])[1] for entry in alone]
    done = subprocess.run(["cmake", "--build", BUILD, "--target", *objects], capture_output=True, text=True)
    print(done.stdout[-4000:])
    if done.returncode != 0:
        sys.exit("a header does not compile alone")
print(f"{len(alone)} headers compile alone, {len(wanted) - len(alone)} in {len(groups)} groups")

known = {header_of(entry)[2] for entry in commands}
missing = [str(path) for path in sources()
           if path.suffix == ".h" and path.parts[0] not in ("tests", "bench", "python")  # the package is a build of its own
           and not (path.parts[0] == "cuda" and not with_cuda) and str(path) not in known]
if missing:
    sys.exit(f"in no FILE_SET of a CMakeLists.txt: {', '.join(missing)}")
