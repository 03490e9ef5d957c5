"""kill -9 at random moments under load: every acknowledged feedback is in the log exactly once, and the learner is the one
that a log read without a break makes."""

import argparse
import collections
import pathlib
import random
import tempfile
import threading
import time

from running_service import RunningService, ServiceError, Users, learned_state, logged

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, required=True)
parser.add_argument("--seed", type=int, default=1)
said = parser.parse_args()
draw = random.Random(said.seed)
FEATURES, WRITERS = 12, 4
users = Users(5, FEATURES, docs=12)
acknowledged = {}  # impression → round
failures = []
pending = {}  # of each writer: what it was sending when the service died


def write(number, service, seed, over):
    try:
        write_until_killed(number, service, seed, over)
    except Exception as error:  # a thread's own does not end the test
        failures.append(repr(error))


def write_until_killed(number, service, seed, over):
    mine = random.Random(seed)
    with service.client(timeout=10) as client:
        while not over.is_set():
            try:
                if number not in pending:
                    pending[number] = users.ask(client, mine)
                impression, clicks = pending[number]
                answer = client.feedback(impression, clicks)
                if acknowledged.setdefault(impression, answer["round"]) != answer["round"]:
                    raise AssertionError(f"{impression} was round {acknowledged[impression]} and is now {answer['round']}")
                del pending[number]
            except ServiceError as error:
                # Feedback that the kill overtook before the log: its list is gone with the process.
                if error.status != 404:
                    raise
                del pending[number]
            except OSError:
                return


with tempfile.TemporaryDirectory() as folder:
    state = pathlib.Path(folder, "state")
    flags = ["--ranker", "olranknet", "--features", FEATURES, "--width", "8", "--steps", "4", "--checkpoint-every", "25"]
    for kill in range(said.kills + 1):
        service = RunningService(state, *flags)
        over = threading.Event()
        writers = [threading.Thread(target=write, args=(number, service, said.seed * 1000 + kill * WRITERS + number, over))
                   for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(draw.uniform(0.05, 0.8))
        if kill == said.kills:
            over.set()
            for writer in writers:
                writer.join()
            break
        service.kill()
        for writer in writers:
            writer.join()
    assert not failures, failures
    with service.client() as client:
        stats = client.wait_until_learned(120)
    rounds = logged(state)
    in_log = collections.Counter(line["impression"] for line in rounds)
    assert max(in_log.values()) == 1, "feedback is in the log twice"
    for impression, number in acknowledged.items():
        assert rounds[number - 1]["impression"] == impression, f"{impression} is not round {number}"
    assert len(rounds) == stats["rounds"] == stats["log_rounds"], (len(rounds), stats)
    replayed = learned_state(state)
    assert replayed["rounds"] == stats["rounds"]
    assert replayed["fingerprint"] == stats["fingerprint"], (replayed, stats)
    assert replayed["pairs"] == stats["pairs"]
    assert service.stop() == 0
    assert len(acknowledged) > 5 * said.kills, f"only {len(acknowledged)} were acknowledged: no load at all"
    print(f"{said.kills} kills, {len(acknowledged)} acknowledged, {len(rounds)} in the log, each once; "
          f"{stats['pairs']} pairs; the same fingerprint {stats['fingerprint']}")
