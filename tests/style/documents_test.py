"""Documents are consistent with the tree: relative links and their anchors resolve, files and scripts that they name
exist, every olrank command in a fenced block is one that the program accepts, flag by flag, and each page that code cites
(`docs/MATH.md, "Certain order"`) has that section. Each page of docs is one step away from the README, each of a folder
in docs two."""

import functools
import itertools
import os
import pathlib
import re
import shlex
import sys

from tracked_files import tracked

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
import command_line  # noqa: E402
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:apps|bench|clients|configs|core|cuda|deploy|docs|jobs|library|logs|models|report|scripts|serve|sim|tests|third_party)/[\w./-]+)`")
PLACEHOLDER = re.compile(r"(?:^|[/_])(?:X|NAME)(?:[._]|$)")  # in the recipes of CONTRIBUTING
CITED = re.compile(r"docs/([A-Za-z]+\.md)(?:, \"([^\"]+)\")?")
CODE = (".h", ".cpp", ".cu", ".cuh", ".py", ".toml", ".cmake")


def headings(path):
    """The text of each heading outside fenced blocks."""
    found = []
    fenced = False
    for line in path.read_text().splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := re.match(r"#+ (.*)", line)):
            found.append(heading[1].strip().replace("`", ""))
    return found


def anchors(path):
    """As GitHub makes them: lower case, spaces as hyphens, punctuation dropped."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(path)}


def unwrapped(text):
    """Comments joined over line ends, so that a citation may be wrapped."""
    return re.sub(r"[ \t]*\n[ \t]*(?:///?|#)?[ \t]*", " ", text)


def citation_errors(path, counts):
    for page, section in CITED.findall(unwrapped(path.read_text())):
        counts["citations"] += 1
        target = pathlib.Path("docs", page)
        if not target.is_file():
            yield f"{path}: docs/{page} does not exist"
        elif section and section not in headings(target):
            yield f"{path}: docs/{page} has no section \"{section}\""


def unlinked_pages(pages):
    """Pages of docs that the README does not link to, and pages of its folders that neither a page of docs links to nor one that the
    README names."""
    def links(page):
        targets = (target.partition("#")[0] for target in LINK.findall(page.read_text()))
        return {os.path.normpath(page.parent / target) for target in targets}

    near = links(pathlib.Path("README.md"))
    far = near.union(*(links(page) for page in pages if page.parent == pathlib.Path("docs") or str(page) in near))
    for page in pages:
        if page.parts[0] == "docs" and str(page) not in (near if len(page.parts) == 2 else far):
            yield f"README.md: no link to {page}"


@functools.cache
def olrank(*arguments):
    return command_line.olrank(*arguments)


def check_command(line):
    words = itertools.takewhile(lambda word: word not in ("|", ">", "<", "&&", ";", "2>"), shlex.split(line, comments=True))
    arguments = list(words)[1:]
    if "--start-from" in arguments:  # a model that a command before it has made
        place = arguments.index("--start-from")
        arguments = arguments[:place] + arguments[place + 2:]
    if arguments and arguments[0] in ("run", "train"):
        done = olrank(*[a for a in arguments if a != "--print-config"], "--print-config")
        return None if done.returncode == 0 else done.stderr.strip()
    command = []
    for argument in arguments[:2]:
        if not re.fullmatch(r"[a-z]+", argument) or olrank(*command, argument, "--help").returncode != 0:
            break
        command.append(argument)
    if not command and not all(argument.startswith("-") for argument in arguments):
        return f"unknown command '{arguments[0]}'"
    for argument in arguments:
        flag = argument.split("=")[0]
        known = olrank(*command, "--help").stdout + olrank("--help").stdout
        if flag.startswith("--") and not re.search(re.escape(flag) + r"(?![\w-])", known):
            return f"'{' '.join(command)}' has no flag {flag}"
    return None


def page_errors(path, counts):
    fenced = None  # language of the current block
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path}:{number}"
        if line.startswith("```"):
            fenced = line[3:].strip() if fenced is None else None
            continue
        if fenced is not None:
            command = line.strip()
            if fenced == "sh" and re.match(r"(build/bin/)?olrank( |$)", command):
                counts["commands"] += 1
                if error := check_command(command):
                    yield f"{place}: {command}: {error}"
            for script in re.findall(r"(?<![\w/.])(scripts/[\w-]+)", command):
                counts["files"] += 1
                if not pathlib.Path(script).is_file():
                    yield f"{place}: {script} does not exist"
            continue
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            counts["links"] += 1
            file, _, anchor = target.partition("#")
            page = path.parent / file if file else path
            if not page.exists():
                yield f"{place}: the link to {target} leads nowhere"
            elif anchor and anchor not in anchors(page):
                yield f"{place}: {file or path} has no heading for #{anchor}"
        for name in NAMED.findall(line):
            if PLACEHOLDER.search(name):
                continue
            counts["files"] += 1
            stem = pathlib.Path(name)
            if not stem.exists() and not list(stem.parent.glob(stem.name + ".*")) and not list(stem.parent.glob(stem.name + "_*")):
                yield f"{place}: {name} does not exist"


counts = {"links": 0, "files": 0, "commands": 0, "citations": 0}
pages = tracked(".md")
found = [error for page in pages for error in page_errors(page, counts)]
found += unlinked_pages(pages)
sources = tracked(*CODE) + [path for path in tracked("") if path.parts[0] == "scripts"]
found += [error for source in sources for error in citation_errors(source, counts)]
print("\n".join(found) or f"{len(pages)} pages are consistent: {counts}")
if min(counts.values()) == 0 or len(pages) < 4:
    sys.exit(f"Too little was checked: {counts}")
sys.exit(1 if found else 0)
