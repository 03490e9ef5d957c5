"""Every header compiles alone, and none is missing from the CMake files that see to it."""

import os
import subprocess
import sys

from tracked_files import sources

build = os.environ["OLRANK_BUILD"]
commands = open(os.path.join(build, "build.ninja"), encoding="utf-8").read()
with_cuda = "cuda/runtime/check.h" in commands
# The CPU build checks the headers that both builds have, so a CUDA build checks only its own.
target = "olrank_cuda_verify_interface_header_sets" if with_cuda else "all_verify_interface_header_sets"
done = subprocess.run(["cmake", "--build", build, "--target", target], capture_output=True, text=True)
print(done.stdout[-4000:])
if done.returncode != 0:
    sys.exit("a header does not compile alone")

missing = [str(path) for path in sources()
           if path.suffix == ".h" and path.parts[0] not in ("tests", "bench", "python")  # the package is a build of its own
           and not (path.parts[0] == "cuda" and not with_cuda)
           and f"{path}.cxx" not in commands and f"{path.name}.cxx" not in commands]
if missing:
    sys.exit(f"in no FILE_SET of a CMakeLists.txt: {', '.join(missing)}")
