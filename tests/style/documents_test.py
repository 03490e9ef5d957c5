"""Documents keep their word: relative links lead somewhere, files and scripts that they name exist, and every olrank
command in a fenced block is one that the program takes, flag by flag."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

from tracked_files import tracked

PROGRAM = os.environ["OLRANK_PROGRAM"]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:apps|bench|clients|configs|core|cuda|deploy|docs|models|report|scripts|serve|sim|tests|third_party)/[\w./-]+)`")
help_texts = {}


def olrank(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)


def help_of(words):
    if words not in help_texts:
        help_texts[words] = olrank(*words, "--help").stdout + olrank("--help").stdout
    return help_texts[words]


def check_command(line):
    words = shlex.split(line, comments=True)
    for end, word in enumerate(words):
        if word in ("|", ">", "<", "&&", ";", "2>"):
            words = words[:end]
            break
    arguments = words[1:]
    if arguments and arguments[0] == "run":
        done = olrank(*[a for a in arguments if a != "--print-config"], "--print-config")
        return None if done.returncode == 0 else done.stderr.strip()
    command = []
    for argument in arguments[:2]:
        if not re.fullmatch(r"[a-z]+", argument) or olrank(*command, argument, "--help").returncode != 0:
            break
        command.append(argument)
    if not command and not all(argument.startswith("-") for argument in arguments):
        return f"'{arguments[0]}' is no command"
    for argument in arguments:
        flag = argument.split("=")[0]
        if flag.startswith("--") and not re.search(re.escape(flag) + r"(?![\w-])", help_of(tuple(command))):
            return f"'{' '.join(command)}' has no flag {flag}"
    return None


def complaints(path, counts):
    fenced = None  # the language of the block we are in
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path}:{number}"
        if line.startswith("```"):
            fenced = line[3:].strip() if fenced is None else None
            continue
        if fenced is not None:
            command = line.strip()
            if fenced == "sh" and re.match(r"(build/bin/)?olrank( |$)", command):
                counts["commands"] += 1
                if complaint := check_command(command):
                    yield f"{place}: {command}: {complaint}"
            for script in re.findall(r"(?<![\w/.])(scripts/[\w-]+)", command):
                counts["files"] += 1
                if not pathlib.Path(script).is_file():
                    yield f"{place}: there is no {script}"
            continue
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:|#", target):
                continue
            counts["links"] += 1
            if not (path.parent / target.split("#")[0]).exists():
                yield f"{place}: the link to {target} leads nowhere"
        for name in NAMED.findall(line):
            counts["files"] += 1
            stem = pathlib.Path(name)
            if not stem.exists() and not list(stem.parent.glob(stem.name + ".*")) and not list(stem.parent.glob(stem.name + "_*")):
                yield f"{place}: there is no {name}"


counts = {"links": 0, "files": 0, "commands": 0}
pages = tracked(".md")
found = [complaint for page in pages for complaint in complaints(page, counts)]
print("\n".join(found) or f"{len(pages)} pages hold: {counts}")
if min(counts.values()) == 0 or len(pages) < 4:
    sys.exit("too little was found: this check looks at nothing")
sys.exit(1 if found else 0)
