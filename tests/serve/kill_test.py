"""kill -9 at random moments under load: every acknowledged feedback is in the log exactly once, and the learner's state equals
that of learning the log without interruption."""

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
options = parser.parse_args()
draw = random.Random(options.seed)
FEATURES, WRITERS = 12, 4
users = Users(5, FEATURES, docs=12)
acknowledged = {}  # impression → round
failures = []
pending = {}  # writer → the feedback it was sending when the service died


def write(number, service, seed, over):
    try:
        write_until_killed(number, service, seed, over)
    except Exception as error:  # exceptions in threads do not end the test
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
                    raise AssertionError(f"{impression} was acknowledged as round {acknowledged[impression]}, now as {answer['round']}")
                del pending[number]
            except ServiceError as error:
                # The service died before logging the feedback, so it forgot the impression.
                if error.status != 404:
                    raise
                del pending[number]
            except OSError:
                return


with tempfile.TemporaryDirectory() as folder:
    state = pathlib.Path(folder, "state")
    flags = ["--ranker", "olranknet", "--features", FEATURES, "--width", "8", "--steps", "4", "--checkpoint-every", "25"]
    for kill in range(options.kills + 1):
        service = RunningService(state, *flags)
        over = threading.Event()
        writers = [threading.Thread(target=write, args=(number, service, options.seed * 1000 + kill * WRITERS + number, over))
                   for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(draw.uniform(0.05, 0.8))
        if kill == options.kills:
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
    assert max(in_log.values()) == 1, "the log holds a feedback twice"
    for impression, number in acknowledged.items():
        assert rounds[number - 1]["impression"] == impression, f"{impression} is not round {number}"
    assert len(rounds) == stats["rounds"] == stats["log_rounds"], (len(rounds), stats)
    replayed = learned_state(state)
    assert replayed["rounds"] == stats["rounds"]
    assert replayed["fingerprint"] == stats["fingerprint"], (replayed, stats)
    assert replayed["pairs"] == stats["pairs"]
    assert service.stop() == 0
    assert len(acknowledged) > 5 * options.kills, f"only {len(acknowledged)} acknowledged: too little load"
    print(f"{options.kills} kills, {len(acknowledged)} acknowledged, {len(rounds)} in the log, each once; "
          f"{stats['pairs']} pairs; equal fingerprints {stats['fingerprint']}")
