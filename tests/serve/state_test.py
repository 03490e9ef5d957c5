"""The state folder of `olrank serve`: files are for their owner only, a backup is whole, a kill loses no event that was acknowledged, and a
service whose lock or log is taken away stops. commands/service.test has refused starts, which change no byte of it."""

import json
import os
import random
import stat
import threading
import time
import unittest

from running_service import ServiceError, ServiceTest, Users, learned_state, logged, resident_bytes, succeed, wait_until

RANKER = ["--ranker", "olranknet", "--features", "6", "--width", "6", "--steps", "4"]


def contents(folder):
    """Everything of a folder that a start could change: names, modes and bytes."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        about = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(about.st_mode) else os.readlink(path) if stat.S_ISLNK(about.st_mode) else None
        found[path.name if path != folder else "."] = (oct(about.st_mode), data)
    return found


class StateTest(ServiceTest):
    def setUp(self):
        super().setUp()
        self.log = self.state / "feedback.jsonl"

    def refused(self, *arguments, code=1):
        """A start that has to be refused, in one sentence or a few on one line, without any change."""
        before = contents(self.state)
        said = super().refused(*arguments, code=code)
        self.assertEqual(contents(self.state), before)
        return said

    def lines(self):
        return self.log.read_bytes().splitlines(keepends=True)


class Backup(StateTest):
    def test_a_backup_under_load_is_a_service_that_learned_the_same_lists(self):
        """Three copies while clients send feedback; a service starts on the last one, with the state of a fresh learner of its log."""
        copy, users = self.folder / "copy", Users(4, 6, docs=8)
        service = self.start(*RANKER, "--checkpoint-every", "20")
        acknowledged, stop = [], threading.Event()

        def clicks(seed):
            draw = random.Random(seed)
            with service.client() as client:
                while not stop.is_set():
                    impression, docs = users.ask(client, draw)
                    client.feedback(impression, docs)
                    acknowledged.append(impression)

        threads = [threading.Thread(target=clicks, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        told = []
        for turn in range(1, 4):
            wait_until(lambda turn=turn: len(acknowledged) >= 60 * turn, "feedback is acknowledged")
            before = list(acknowledged)
            told.append(json.loads(succeed("log", "backup", "--state", self.state, "--out", copy, "--json")))
            lists = [line["impression"] for line in logged(copy)]
            self.assertEqual(set(before) - set(lists), set())  # all that was acknowledged before
            self.assertEqual(len(lists), told[-1]["records"])
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(service.stop(), 0)
        self.assertEqual(sum(one["new_records"] for one in told), told[-1]["records"])
        whole = self.log.read_bytes()
        self.assertTrue(whole.startswith((copy / "feedback.jsonl").read_bytes()))
        self.assertTrue((copy / "checkpoint").exists())
        restored = self.start("--verbose", state=copy)
        self.assertRegex(restored.messages(), r"learning continues from round [1-9]")
        self.assertNotIn("warning", restored.messages())
        with restored.client() as client:
            stats = client.wait_until_learned()
        self.assertEqual(restored.stop(), 0)
        self.assertEqual(stats["rounds"], told[-1]["records"])
        self.assertEqual(stats["fingerprint"], learned_state(copy)["fingerprint"])


class Ownership(StateTest):
    def test_modes_do_not_depend_on_the_umask(self):
        service = self.start(*RANKER, preexec_fn=lambda: os.umask(0))
        self.play(service, 3)
        self.assertEqual(service.stop(), 0)
        modes = {name: mode for name, (mode, _) in contents(self.state).items()}
        self.assertEqual(modes.pop("."), "0o40700")
        self.assertEqual(set(modes), {"checkpoint", "feedback.jsonl", "impressions-000001.bin", "lock", "service.toml"})
        self.assertEqual(set(modes.values()), {"0o100600"})

    def stops_when(self, take_away, message):
        """The service stops by itself, and what it would have written is not written."""
        service = self.start(*RANKER)
        self.play(service, 3)
        users, draw = Users(2, 6), random.Random(5)
        with service.client(timeout=5) as client:
            impression, clicks = users.ask(client, draw)
            log = self.lines()
            take_away()
            before = contents(self.state)
            with self.assertRaises((ServiceError, OSError)) as refused:
                client.feedback(impression, clicks)
            if isinstance(refused.exception, ServiceError):
                self.assertEqual(refused.exception.status, 503)
        self.assertEqual(service.process.wait(timeout=900), 1)
        service._ended()
        self.assertIn(message, service.messages())
        self.assertEqual(contents(self.state), before)
        return log

    def test_stops_without_its_lock(self):
        log = self.stops_when((self.state / "lock").unlink, "lock: The lock was removed or replaced while the service ran")
        self.assertEqual(self.lines(), log)
        self.assertEqual(self.start().stop(), 0)

    def test_a_second_service_never_gets_a_log_in_use(self):
        service = self.start(*RANKER)
        self.play(service, 3)
        os.kill(service.process.pid, 19)  # SIGSTOP: it cannot notice
        (self.state / "lock").unlink()
        self.assertIn("Another process writes this log", self.refused())
        os.kill(service.process.pid, 18)
        self.assertEqual(service.process.wait(timeout=900), 1)
        service._ended()


class Memory(StateTest):
    def test_a_sparse_request_cannot_take_the_memory_of_a_dense_one(self):
        service = self.start("--ranker", "pairrank", "--features", "1000000", "--covariance", "diagonal", "--max-body", "1MB")
        with service.client() as client:
            before = resident_bytes(service.process)
            with self.assertRaises(ServiceError) as refused:
                client.rank("q", [{"id": doc, "features": {}} for doc in range(1000)])
            self.assertEqual((refused.exception.status, refused.exception.field), (413, "docs[0].features"))
            self.assertLess(resident_bytes(service.process) - before, 20_000_000)


class Windows(ServiceTest):
    TYPES = ["click", "cart", "purchase"]
    EVENTS = ["--window", "1", "--events", "click=1,cart=3,purchase=10"]

    def test_kills_under_load_lose_no_acknowledged_event(self):
        """Ten kills while four clients send events; afterwards each acknowledged event is in the log once, or was late."""
        draw = random.Random(3)
        users = Users(2, 4, docs=8)
        acknowledged = {}  # impression -> set of (rank, type), each told to be in time
        lock = threading.Lock()
        stop = threading.Event()

        def client_thread(seed):
            mine = random.Random(seed)
            while not stop.is_set():
                try:
                    with service_of[0].client(timeout=5) as client:
                        while not stop.is_set():
                            impression = client.rank("q", users.queries[mine.randrange(50)])["impression"]
                            for _ in range(mine.randrange(4)):
                                event = mine.randrange(5), mine.choice(self.TYPES)
                                answer = client.events(impression, [{"rank": event[0], "type": event[1]}])
                                if not answer["late"]:
                                    with lock:
                                        acknowledged.setdefault(impression, set()).add(event)
                except (OSError, ServiceError):
                    time.sleep(0.05)

        service_of = [self.start("--ranker", "pairrank", "--features", "4", "--cutoff", "5", *self.EVENTS)]
        threads = [threading.Thread(target=client_thread, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            time.sleep(0.3 + draw.random())
            service_of[0].kill()
            service_of[0] = self.start(*self.EVENTS)
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        with service_of[0].client() as client:
            wait_until(lambda: client.stats()["open_impressions"] == 0, "all windows close")
            client.wait_until_learned()
            fingerprint = client.stats()["fingerprint"]
        self.assertEqual(service_of[0].stop(), 0)
        lines = logged(self.state)
        by_impression = {line["impression"]: line for line in lines}
        self.assertEqual(len(by_impression), len(lines))
        weights = dict(zip(self.TYPES, (1, 3, 10)))
        self.assertGreater(len(acknowledged), 100)
        for impression, events in acknowledged.items():
            line = by_impression[impression]
            rewards = line.get("rewards", line["clicks"])
            for rank in range(5):
                told = sum(weights[kind] for at, kind in events if at == rank)
                # One event may have been written and killed before its answer.
                self.assertGreaterEqual(rewards[rank], told, line)
        self.assertEqual(learned_state(self.state)["fingerprint"], fingerprint)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main(verbosity=2)
