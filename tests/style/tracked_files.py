"""The files of this checkout, for the checks beside it: git's list, or the tree where there is no git."""

import os
import pathlib
import subprocess

SOURCE_FOLDERS = ("apps", "bench", "core", "cuda", "examples", "jobs", "library", "logs", "models", "recommend", "report", "serve", "sim", "studies",
                  "tests")


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


def changed_files():
    """The commit to compare with, and the names of the files that differ from it: OLRANK_TIDY_BASE, else the common ancestor
    with origin's main branch, else the commit before. Without a commit, None and the reason."""

    def git(*arguments):
        done = subprocess.run(["git", *arguments], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    if head is None:
        return None, "this folder is no git checkout, so nothing says what has changed"
    base = os.environ.get("OLRANK_TIDY_BASE") or git("merge-base", "HEAD", "origin/main")
    if base is None or base == head:
        base = git("rev-parse", "HEAD~1")
    if base is None:
        return None, "there is no earlier commit to compare with"
    return base, {*git("diff", "--name-only", base).splitlines(), *git("ls-files", "--others", "--exclude-standard").splitlines()}
