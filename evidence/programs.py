"""The programs that the steps run, and what may come of a command."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent  # the checkout, or the bundle's bin
SKIP_STATUS = 77  # the exit status of a skipped check


class Failed(Exception):
    """The step's check failed; the text says how."""


class OutOfTime(Failed):
    """A command was still running when its time was up."""


class Skipped(Exception):
    """The step is not possible on this machine; the text says why."""


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of the programs: a bundle's launcher passes their library path, which this Python must not use."""
    libraries = os.environ.get("OLRANK_LIBRARY_PATH")
    return {**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {}), **(more or {})}


def end_group(process: subprocess.Popen[str]) -> str:
    """Kills the program and its children; returns what it had printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a process that hangs in the driver survives even this
        return process.communicate(timeout=5)[0] or ""
    return ""


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


class Programs:
    """The programs of a built tree or a bundle, and the tools of the machine."""

    def __init__(self, folder: Path | None) -> None:
        places = [folder] if folder else [HERE / "build/bin", HERE]
        self.folder = next((place for place in places if (place / "olrank").exists()), places[0])
        self.test_folders = [self.folder / "tests", self.folder.parent / "tests"]

    def find(self, name: str) -> Path:
        for folder in [self.folder, *self.test_folders]:
            if (path := folder / name).is_file() and os.access(path, os.X_OK):
                return path
        raise Skipped(f"{name} is not built")

    def tool(self, name: str, first: list[Path], advice: str) -> Path:
        """A tool of the CUDA toolkit."""
        candidates = [*first, *([Path(os.environ["CUDA_HOME"]) / "bin"] if os.environ.get("CUDA_HOME") else [])]
        candidates += [Path(place) for place in sorted(glob.glob("/usr/local/cuda*/bin"))]
        for folder in candidates:
            if os.access(folder / name, os.X_OK):
                return folder / name
        if found := shutil.which(name):
            return Path(found)
        raise Skipped(f"{name} is not installed{advice}")

    def sanitizer(self) -> Path:
        places = [self.folder.parent / "compute-sanitizer", HERE / ".deps/compute-sanitizer/nvidia/cu13/bin"]
        return self.tool("compute-sanitizer", places, ": `scripts/fetch-libtorch --sanitizer` fetches it, for bundles too")

    def profiler_of_kernels(self) -> Path:
        return self.tool("ncu", [Path(place) for place in sorted(glob.glob("/opt/nvidia/nsight-compute/*"))], "")
