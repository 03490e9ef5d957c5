"""clang-tidy's short list on changed code."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tracked_files import SOURCE_FOLDERS, changed_files


def skip(reason):
    print(f"style/tidy ... skipped '{reason}'")
    sys.exit(77)


tool = next((name for name in ("clang-tidy-14", "clang-tidy") if shutil.which(name)), None)
if tool is None:
    skip("clang-tidy is not installed")
base, changed = changed_files()
if base is None:
    skip(changed)
files = sorted(name for name in changed
               if name.endswith(".cpp") and name.split("/")[0] in SOURCE_FOLDERS and name.split("/")[0] != "tests"
               and pathlib.Path(name).exists())


GCC_ONLY = r" (-Wno-subobject-linkage|--param=\S+)"


def commands_of_single_files():
    """The build's compile commands, one for each source file, also where several compile at once."""
    single = []
    for entry in json.loads(pathlib.Path(os.environ["OLRANK_BUILD"], "compile_commands.json").read_text()):
        together = entry["file"]
        sources = [together]
        if "/Unity/" in together:
            sources = re.findall(r'^#include "(.*)"$', pathlib.Path(together).read_text(), re.M)
        single += [{"directory": entry["directory"], "file": source, "command": re.sub(GCC_ONLY, "", entry["command"].replace(together, source))}
                   for source in sources]
    return single


commands = commands_of_single_files()
known = {entry["file"] for entry in commands}
files = [name for name in files if str(pathlib.Path(name).resolve()) in known]
if not files:
    print(f"no source file has changed since {base[:12]}")
    sys.exit(0)
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "compile_commands.json").write_text(json.dumps(commands))
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = list(pool.map(lambda name: subprocess.run([tool, "--quiet", "-p", folder, name], stdout=subprocess.PIPE,
                                                         stderr=subprocess.DEVNULL, text=True), files))
print("".join(job.stdout for job in jobs)[-8000:])
if any(job.returncode != 0 for job in jobs):
    sys.exit(f"clang-tidy has something to say about {len(files)} files changed since {base[:12]}")
print(f"{len(files)} files changed since {base[:12]} are clean")
