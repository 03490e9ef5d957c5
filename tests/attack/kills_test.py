"""kill -9 at moments of a seeded schedule while several clients send feedback and repeat what was acknowledged: every
acknowledged feedback is in the log exactly once with its clicks, is learned exactly once, and repeating it changes nothing. A list
that was shown takes its feedback from the next start, too. The log is closed and compressed in small segments all the while."""

import argparse
import collections
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from running_service import PROGRAM, RunningService, ServiceError, Users, learned_state, succeed  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, default=50)
parser.add_argument("--seconds", type=float, default=22, help="no further kill after this time")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
draw = random.Random(options.seed)
FEATURES, WRITERS = 12, 4
FLAGS = ["--ranker", "olranknet", "--features", FEATURES, "--width", "8", "--steps", "4", "--checkpoint-every", "25",
         "--max-impressions", "1000000", "--segment", "20kB"]
users = Users(5, FEATURES, docs=12)
acknowledged = {}  # impression → (round, clicks)
left_open = []  # lists that no writer answers in the life that shows them
pending = {}  # writer → the feedback it was sending when the service died
counts = collections.Counter()
failures = []


def write(number, service, seed, over):
    try:
        write_until_killed(number, service, random.Random(seed), over)
    except Exception as error:  # exceptions in threads do not end the test
        failures.append(repr(error))


def write_until_killed(number, service, mine, over):
    with service.client(timeout=10) as client:
        while not over.is_set():
            try:
                if acknowledged and mine.random() < 0.3:
                    repeat(client, mine)
                else:
                    send(number, client, mine)
            except OSError:
                return


def send(number, client, mine):
    if number not in pending:
        pending[number] = users.ask(client, mine)
    impression, clicks = pending[number]
    answer = client.feedback(impression, clicks)
    counts["logged but not acknowledged"] += answer["duplicate"]
    known = acknowledged.setdefault(impression, (answer["round"], clicks))
    if known[0] != answer["round"]:
        raise AssertionError(f"{impression} was acknowledged as round {known[0]}, now as {answer['round']}")
    del pending[number]


def repeat(client, mine):
    """Sends acknowledged feedback again: the same clicks are a duplicate, others a conflict."""
    impression = mine.choice(list(acknowledged))
    number, clicks = acknowledged[impression]
    if mine.random() < 0.5:
        answer = client.feedback(impression, clicks)
        if (answer["duplicate"], answer["round"]) != (True, number):
            raise AssertionError(f"{impression} is round {number}, but repeated it got {answer}")
        counts["repeated"] += 1
    else:
        try:
            client.feedback(impression, [0] if not clicks else [])
            raise AssertionError(f"{impression} was accepted with other clicks")
        except ServiceError as error:
            if (error.status, error.code) != (409, "other_clicks_accepted"):
                raise
        counts["contradicted"] += 1


def die_starting():
    process = subprocess.Popen([PROGRAM, "serve", "--state", str(state), "--port", "0", *map(str, FLAGS)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(draw.uniform(0.0, 0.4))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=900)


def live(life, moment):
    """One life of the service under load, ended by kill -9 at `moment`: in the middle of it, during a stop or a checkpoint."""
    service = RunningService(state, *FLAGS)
    over = threading.Event()
    with service.client() as client:
        for impression, clicks in left_open:
            answer = client.feedback(impression, clicks)
            assert not answer["duplicate"], "the feedback on a list that was shown before the kill was a duplicate"
            acknowledged[impression] = answer["round"], clicks
        left_open[:] = [users.ask(client, draw) for _ in range(6)]
    writers = [threading.Thread(target=write, args=(number, service, options.seed * 10_000 + life * WRITERS + number, over))
               for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    time.sleep(draw.uniform(0.05, 0.7))
    if moment == "last":
        over.set()
    elif moment == "stopping":
        service.process.send_signal(signal.SIGTERM)
        time.sleep(draw.uniform(0.0, 0.1))
    elif moment == "checkpoint":
        def save():
            try:
                service.client(timeout=5).checkpoint()
            except (OSError, ServiceError):
                pass
        saver = threading.Thread(target=save)
        saver.start()
        writers.append(saver)
        time.sleep(draw.uniform(0.0, 0.02))
    if moment != "last":
        service.kill()
    for writer in writers:
        writer.join()
    return service


with tempfile.TemporaryDirectory() as folder:
    state = pathlib.Path(folder, "state")
    until = time.monotonic() + options.seconds
    kills = 0
    while kills < options.kills and time.monotonic() < until:
        moment = draw.choice(["running", "running", "running", "stopping", "checkpoint", "starting"])
        counts[f"killed {moment}"] += 1
        if moment == "starting":
            die_starting()
        else:
            live(kills, moment)
        kills += 1
    service = live(kills, "last")
    assert not failures, failures[:3]
    with service.client() as client:
        stats = client.wait_until_learned(120)
    rounds = [json.loads(line) for line in succeed("log", "show", "--log", state, "--json").splitlines()]
    in_log = collections.Counter(line["impression"] for line in rounds)
    assert max(in_log.values()) == 1, "the log holds a feedback twice"
    assert [line["round"] for line in rounds] == list(range(1, len(rounds) + 1))
    for impression, (number, clicks) in acknowledged.items():
        line = rounds[number - 1]
        assert line["impression"] == impression, f"{impression} is not round {number}"
        clicked = [doc for doc, click in zip(line["shown"], line["clicks"]) if click]
        assert sorted(clicked) == sorted(clicks), f"{impression} has the clicks {clicked}, not {clicks}"
    assert len(rounds) == stats["rounds"] == stats["log_rounds"], (len(rounds), stats)
    replayed = learned_state(state)
    for figure in ("rounds", "pairs", "fingerprint"):
        assert replayed[figure] == stats[figure], (figure, replayed, stats)
    assert service.stop() == 0
    assert len(list(state.glob("feedback-*.jsonl*"))) > 3, "the log has too few segments"
    succeed("log", "compact", "--state", state)
    assert learned_state(state)["fingerprint"] == stats["fingerprint"], "the compacted log is another one"
    torn = len(list(state.glob("feedback.jsonl.cut-at-*")))
    left_behind = [path.name for path in state.iterdir() if ".tmp-" in path.name]
    assert not left_behind, left_behind
    assert kills >= 15 and len(acknowledged) > 5 * kills, f"only {kills} kills, {len(acknowledged)} acknowledged: too little load"
    print(f"{kills} kills, {len(acknowledged)} acknowledged, {len(rounds)} in the log, each once; {torn} torn ends; "
          f"{stats['pairs']} pairs; equal fingerprints {stats['fingerprint']}; " +
          ", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
