"""Starts of the real program on damaged states: a mutated log, checkpoint, identity or model either is refused with exit code 1
or 2, a message on one line and an untouched folder, or the service serves a valid beginning of the log, within a memory limit."""

import argparse
import collections
import json
import pathlib
import random
import resource
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from running_service import RunningService, Users, olrank  # noqa: E402
from state_test import contents  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--mutants", type=int, default=80)
parser.add_argument("--seconds", type=float, default=20, help="no further mutant after this time")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
draw = random.Random(options.seed)
ROUNDS, MEMORY = 9, 4 << 30
TELLING = b"0123456789{}[]\":,.-e\n\r\0\xff="


def mutated(data):
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randint(0, len(data))
        kind = draw.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[at:at + draw.randint(1, 40)]
        elif kind == 2:
            data[at:at] = bytes(draw.choices(TELLING, k=draw.randint(1, 5)))
        elif kind == 3:
            data[at:at] = data[at:at + draw.randint(1, 500)]
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            data = bytearray(bytes(data).replace(b"\n", b"\r\n", draw.choice([1, -1])))
        else:
            lines = bytes(data).splitlines(keepends=True)
            if len(lines) > 1:
                a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
                lines[a], lines[b] = lines[b], lines[a]
            data = bytearray(b"".join(lines))
    return bytes(data)


def start(state):
    limit = (MEMORY, MEMORY)
    return olrank("serve", "--state", state, "--learn-only", "--json",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))


def beginnings(original):
    """The fingerprint after each beginning of the log."""
    lines = (original / "feedback.jsonl").read_bytes().splitlines(keepends=True)
    found = {}
    for rounds in range(ROUNDS + 1):
        part = original.with_name(f"first{rounds}")
        shutil.copytree(original, part)
        (part / "checkpoint").unlink()
        (part / "feedback.jsonl").write_bytes(b"".join(lines[:rounds]))
        done = start(part)
        assert done.returncode == 0, done.stderr
        found[b"".join(lines[:rounds])] = json.loads(done.stdout)["fingerprint"]
    return found


with tempfile.TemporaryDirectory() as folder:
    original = pathlib.Path(folder, "original")
    model = pathlib.Path(folder, "model.safetensors")
    begin = ["--features", "6", "--cutoff", "3"]
    service = RunningService(pathlib.Path(folder, "first"), "--ranker", "olranknet", "--width", "6", "--steps", "4", *begin)
    with service.client() as client:
        model.write_bytes(client.model())
    service.kill()
    service = RunningService(original, "--model", model, *begin)
    users = Users(2, 6)
    with service.client() as client:
        for number in range(ROUNDS):
            client.feedback(*users.ask(client, draw))
            if number == 5:
                client.wait_until_learned()
                client.checkpoint()
        client.wait_until_learned()
    service.kill()
    expected = beginnings(original)
    whole = max(expected, key=len)
    counts = collections.Counter()
    until = time.monotonic() + options.seconds
    for number in range(options.mutants):
        if number >= 20 and time.monotonic() > until:
            break
        state = pathlib.Path(folder, f"mutant{number}")
        shutil.copytree(original, state)
        name = ("feedback.jsonl", "checkpoint", "feedback.jsonl", "checkpoint", "service.toml", "start.safetensors")[number % 6]
        data = (state / name).read_bytes()
        data = data[:draw.randrange(len(data))] if number % 12 == 0 else mutated(data)
        (state / name).write_bytes(data)
        if name == "feedback.jsonl" and draw.random() < 0.5:
            (state / "checkpoint").unlink()
        before = contents(state)
        done = start(state)
        where = f"mutant {number} of {name}: {done.returncode} {done.stderr}"
        if done.returncode == 0:
            log = (state / "feedback.jsonl").read_bytes()
            assert log in expected, where
            if name == "feedback.jsonl":
                assert b"\n" not in data[len(log):], where  # nothing but a torn end was cut
            if name != "service.toml":  # another seed makes another learner
                assert json.loads(done.stdout)["fingerprint"] == expected[log], where
            counts[f"{name} served"] += 1
        else:
            assert done.returncode in (1, 2), where
            assert done.stderr.startswith("olrank: ") and done.stderr.count("\n") == 1, where
            assert "bad_alloc" not in done.stderr, where
            assert contents(state) == before, where
            counts[f"{name} refused"] += 1
        shutil.rmtree(state)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    assert sum(counts.values()) >= 20, counts
    assert counts["feedback.jsonl refused"] > 0 and counts["checkpoint refused"] > 0, counts
