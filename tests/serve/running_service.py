"""A service as a child process, and simulated users with documents to rank, for the tests in this folder."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "clients" / "python"), str(HERE.parents[1] / "apps")]
from command_line import PROGRAM, InFolder, olrank, succeed  # noqa: E402, F401
from olrank_client import Client, ServiceError  # noqa: E402, F401


class RunningService:
    """A service on a free port of this machine."""

    def __init__(self, state, *arguments, **options):
        self.log = tempfile.TemporaryFile("w+")
        folder = ["--state", str(state)] if state is not None else []
        self.process = subprocess.Popen([PROGRAM, "serve", *folder, "--port", "0", *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, **options)
        self.url = self.process.stdout.readline().strip()
        if not self.url.startswith("http://"):
            self.process.wait(timeout=10)
            raise RuntimeError(f"the service did not start: {self.messages()}")

    @property
    def address(self):
        """Host and port."""
        parts = urllib.parse.urlsplit(self.url)
        return parts.hostname, parts.port

    def messages(self):
        if not self.log.closed:
            self.log.seek(0)
            self.messages_read = self.log.read()
        return self.messages_read

    def _ended(self):
        self.messages()
        self.log.close()
        self.process.stdout.close()

    def client(self, **options):
        return Client(self.url, **options)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=900)
        self._ended()

    def stop(self):
        """Sends SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=900)
        self._ended()
        return code


class Users:
    """Queries with documents, and a user who clicks documents with a large first and a small last feature."""

    def __init__(self, seed, features, docs=20, queries=50):
        draw = random.Random(seed)
        self.features = features
        self.queries = [[{"id": f"d{doc}", "features": [round(draw.random(), 3) for _ in range(features)]}
                         for doc in range(docs)] for _ in range(queries)]

    def read(self, client, draw, k=5):
        """A ranking of a random query, and the documents clicked in it."""
        query = draw.randrange(len(self.queries))
        ranking = client.rank(f"q{query}", self.queries[query], k=k)
        by_id = {doc["id"]: doc["features"] for doc in self.queries[query]}
        return ranking, [doc["id"] for doc in ranking["docs"] if by_id[doc["id"]][0] - by_id[doc["id"]][-1] > 0.2]

    def ask(self, client, draw, k=5):
        ranking, clicks = self.read(client, draw, k)
        return ranking["impression"], clicks


class ServiceTest(InFolder):
    """Has a folder, and services that end with the test."""

    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        self.services = []
        self.addCleanup(lambda: [service.kill() for service in self.services if not service.process.stdout.closed])

    def token(self):
        """A file with the token of a service."""
        file = self.folder / "token"
        file.write_text("the token\n")
        return file

    def start(self, *arguments, state=None, **options):
        self.services.append(RunningService(state or self.state, *arguments, **options))
        return self.services[-1]

    def refused(self, *arguments, state=None, code=2):
        """The one line that a refused start says."""
        done = olrank("serve", "--state", state or self.state, "--port", "0", *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        return done.stderr

    def play(self, service, rounds, seed=1, features=6, token=None):
        users, draw = Users(2, features), random.Random(seed)
        with service.client(token=token) as client:
            for _ in range(rounds):
                client.feedback(*users.ask(client, draw))
            return client.wait_until_learned()


def learned_state(state):
    """The state of a fresh learner after the log in `state`: {"rounds", "pairs", "fingerprint"}."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder, "state")
        fresh.mkdir()
        for name in ("service.toml", "start.safetensors"):
            if (pathlib.Path(state) / name).exists():
                (fresh / name).write_bytes((pathlib.Path(state) / name).read_bytes())
        return json.loads(succeed("serve", "--state", fresh, "--import-log", pathlib.Path(state) / "feedback.jsonl",
                                  "--learn-only", "--json"))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def logged(state):
    with open(pathlib.Path(state) / "feedback.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def resident_bytes(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as counts:
        return int(counts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(process):
    """Returns the seconds that all threads have taken."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads(process):
    return len(os.listdir(f"/proc/{process.pid}/task"))


def wait_until(condition, what, seconds=600):
    until = time.monotonic() + seconds  # the default only ends what hangs
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.05)
