"""The files of this checkout, for the checks beside it: git's list, or the tree where there is no git."""

import pathlib
import subprocess

SOURCE_FOLDERS = ("apps", "bench", "core", "cuda", "examples", "library", "models", "report", "serve", "sim", "tests")


def tracked(*suffixes):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                            text=True)
    if listed.returncode == 0:
        paths = [pathlib.Path(line) for line in listed.stdout.splitlines()]
    else:
        paths = [path for folder in (*SOURCE_FOLDERS, "docs", "scripts") for path in pathlib.Path(folder).rglob("*")]
        paths += pathlib.Path(".").glob("*.md")
    return sorted({path for path in paths if path.is_file() and path.suffix in suffixes})


def sources():
    return [path for path in tracked(".h", ".cpp", ".cu", ".cuh") if path.parts[0] in SOURCE_FOLDERS]
