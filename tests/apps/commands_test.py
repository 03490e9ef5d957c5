"""Plays the tests that are data, commands/*.test: commands with what they print, and requests with what a service answers.

A test begins with `== what holds` and has a folder of its own. Its lines:
  file NAME              the indented lines below it are the file's; \\xHH stands for a byte
  ! WORDS                bash runs them in the folder, and they succeed; the files `out` and `err` have what the last command printed
  $ WORDS                olrank runs with these words, before which NAME=VALUE are variables of its environment
  serve WORDS            a service starts in the folder `state`, if these words name no other; $URL in them is that of the service before
  stop | kill            ends it
  play ROUNDS [SEED FEATURES]  its users give feedback; the output is what it has learned
  until NAME = VALUE     waits for a figure of the service
  METHOD PATH [BODY]     the service is asked; $NAME in the body is a value that was kept
  exit N | status N      the code of the command or of the answer; without this line 0 and 200
  out TEXT | err TEXT    standard output (or the answer) and the messages have this text; ... stands for anything
  json PATH = VALUE      the output has this value there, or with != another one; $NAME in it is a value that was kept
  keep NAME = PATH       as a value for later requests
  read FILE              the lines below it are about this file
  refusals SECTION       the rows of refusals.txt, of which none leaves a file; behind it the command, and NAME=VALUE for a {NAME} of the rows
A command that fails and prints nothing says one sentence."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from running_service import RunningService, ServiceTest, olrank, wait_until  # noqa: E402

FOLDER = pathlib.Path(__file__).with_name("commands")


def bytes_of(lines):
    return "".join(line + "\n" for line in lines).encode().decode("unicode_escape").encode("latin-1") if "\\x" in "".join(lines) else \
        "".join(line + "\n" for line in lines).encode()


class Commands(ServiceTest):
    def follow(self, lines):
        self.code, self.is_checked, self.kept = 0, True, {}
        while lines:
            word, _, rest = lines.pop(0).partition(" ")
            if word in ("$", "!", "serve", "stop", "kill", "play", "file", "read", "refusals", "GET", "POST", "PUT", "DELETE"):
                self.finish()
            if word == "file":
                own = []
                while lines and lines[0].startswith("  "):
                    own.append(lines.pop(0)[2:])
                pathlib.Path(rest).parent.mkdir(parents=True, exist_ok=True)
                pathlib.Path(rest).write_bytes(bytes_of(own))
            elif word == "!":
                subprocess.run(["bash", "-euo", "pipefail", "-c", rest], check=True)
            elif word == "stop":
                self.assertEqual(self.services[-1].stop(), 0)
                self.err = self.services[-1].messages()
                pathlib.Path("err").write_text(self.err)
            elif word == "kill":
                self.services[-1].kill()
            elif word == "serve":
                words = rest.replace("$URL", self.services[-1].url if self.services else "").split()
                self.services.append(RunningService(None if {"--state", "--follow"} & {*words} else "state", *words))
                self.err = self.services[-1].messages()
            elif word == "play":
                self.out = json.dumps(self.play(self.services[-1], *map(int, rest.split())))
            elif word == "until":
                name, value = rest.split(" = ")
                with self.services[-1].client() as client:
                    wait_until(lambda: str(client.stats()[name]) == value, rest)
            else:
                self.step(word, rest)
        self.finish()

    def with_kept(self, text):
        return re.sub(r"\$(\w+)", lambda found: json.dumps(self.kept[found[1]]), text)

    def step(self, word, rest):
        if word == "$":
            words = shlex.split(rest)
            own = {}
            while re.match("[A-Z_]+=", words[0]):
                own.update([words.pop(0).split("=", 1)])
            done = olrank(*words, env={**os.environ, **own} if own else None)
            self.code, self.wanted, self.out, self.err, self.is_checked = done.returncode, 0, done.stdout, done.stderr, False
            self.is_start = words[0] == "serve"
            pathlib.Path("out").write_text(self.out)
            pathlib.Path("err").write_text(self.err)
        elif word in ("GET", "POST", "PUT", "DELETE"):
            path, _, body = rest.partition(" ")
            body = self.with_kept(body).encode() if body else None
            asked = urllib.request.Request(self.services[-1].url + path, body, {"Content-Type": "application/json"}, method=word)
            try:
                with urllib.request.urlopen(asked, timeout=900) as answer:
                    self.code, self.out = answer.status, answer.read().decode()
            except urllib.error.HTTPError as refused:
                with refused:
                    self.code, self.out = refused.code, refused.read().decode()
            self.wanted, self.err, self.is_checked, self.is_start = 200, "", False, False
            pathlib.Path("out").write_text(self.out)
        elif word in ("exit", "status"):
            self.assertFalse(self.is_checked, "the code is that of a command or an answer just before")
            self.wanted = int(rest)
        elif word in ("out", "err"):
            said = self.out if word == "out" else self.err
            self.assertRegex(said, re.compile(".*".join(map(re.escape, rest.split("..."))), re.DOTALL))
        elif word == "refusals":
            section, *given = shlex.split(rest)
            before = sorted(os.listdir())
            for _ in self.refusals(given.pop(0) if given else section, section, **dict(one.split("=", 1) for one in given)):
                self.assertEqual(sorted(os.listdir()), before)
        elif word == "read":
            self.out = pathlib.Path(rest).read_text()
        elif word in ("json", "keep"):
            name, sign, value = re.split(" (!?=) ", rest, maxsplit=1)
            found = json.loads(self.out)
            for key in (name if word == "json" else value).split("/"):
                found = found[int(key) if isinstance(found, list) else key]
            if word == "keep":
                self.kept[name] = found
            else:
                (self.assertEqual if sign == "=" else self.assertNotEqual)(found, json.loads(self.with_kept(value)), name)
        else:
            self.fail(f"{word} is no line of a test")

    def refused(self, code, sentence, *words):
        done = olrank(*words)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertIn(sentence, self.last_sentence(done.stderr))

    def last_sentence(self, messages):
        """The program's one sentence is the last line, below warnings and progress."""
        said = [line.startswith("olrank: ") for line in messages.splitlines()]
        self.assertEqual((sum(said), said[-1:]), (1, [True]), messages)
        return messages.splitlines()[-1]

    def finish(self):
        if self.is_checked:
            return
        self.is_checked = True
        self.assertEqual(self.code, self.wanted, self.out + self.err)
        if self.code != 0 and not self.out:
            self.last_sentence(self.err)
        if self.code != 0 and self.is_start:
            self.assertEqual((self.out, self.err.count("\n")), ("", 1), self.err)


def add_tests():
    files = sorted(FOLDER.glob("*.test"))
    assert files, FOLDER
    for file in files:
        for part in ("\n" + file.read_text()).split("\n== ")[1:]:
            name, *lines = part.rstrip("\n").split("\n")

            def test(self, lines=lines):
                self.addCleanup(os.chdir, os.getcwd())
                os.chdir(self.folder)
                self.follow([line for line in lines if line and not line.startswith("#")])
            name = f"test_{file.stem}_{re.sub(r'[^a-z0-9]+', '_', name.lower())}"
            assert not hasattr(Commands, name), name
            setattr(Commands, name, test)


add_tests()


if __name__ == "__main__":
    unittest.main()
