"""`olrank serve --window`: events of several types come in while a list's window is open, and a kill loses none that was
acknowledged. commands/service.test has stops and late events."""

import random
import threading
import time
import unittest

from running_service import ServiceError, ServiceTest, Users, learned_state, logged, wait_until

RANKER = ["--ranker", "pairrank", "--features", "4", "--cutoff", "5"]
TYPES = ["click", "cart", "purchase"]
EVENTS = ["--events", "click=1,cart=3,purchase=10"]


class WindowTest(ServiceTest):
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
                                event = mine.randrange(5), mine.choice(TYPES)
                                answer = client.events(impression, [{"rank": event[0], "type": event[1]}])
                                if not answer["late"]:
                                    with lock:
                                        acknowledged.setdefault(impression, set()).add(event)
                except (OSError, ServiceError):
                    time.sleep(0.05)

        service_of = [self.start(*RANKER, "--window", "1", *EVENTS)]
        threads = [threading.Thread(target=client_thread, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            time.sleep(0.3 + draw.random())
            service_of[0].kill()
            service_of[0] = self.start("--window", "1", *EVENTS)
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
        weights = dict(zip(TYPES, (1, 3, 10)))
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
    unittest.main(verbosity=2)
