"""`olrank serve --window`: events of several types come in while a list's window is open, a kill loses none that was acknowledged,
and late ones are kept and counted."""

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

    def test_a_stop_keeps_open_windows(self):
        users = Users(1, 4, docs=8)
        service = self.start(*RANKER, "--window", "3600", *EVENTS)
        with service.client() as client:
            impression = client.rank("q", users.queries[0])["impression"]
        self.assertEqual(service.stop(), 0)
        self.assertEqual(logged(self.state), [])
        service = self.start("--window", "3600", *EVENTS)
        with service.client() as client:
            self.assertEqual(client.stats()["open_impressions"], 1)
            self.assertFalse(client.feedback(impression, [0])["duplicate"])
            self.assertTrue(client.events(impression, [{"rank": 0, "type": "click"}])["duplicate"])
            self.assertEqual(client.events(impression, [{"rank": 2, "type": "cart", "at": 1764158400000}]),
                             {"accepted": True, "duplicate": False, "late": False, "round": None})
        service.kill()
        # Types belong to the journal: a start that forgets them changes nothing.
        kept = {path.name: path.read_bytes() for path in self.state.iterdir()}
        for fewer in ([], ["--events", "purchase=10"]):
            self.assertIn("acknowledged events of types that this start does not name: cart (1). Give --window and --events as before",
                          self.refused("--window", "3600", *fewer))
        self.assertEqual({path.name: path.read_bytes() for path in self.state.iterdir()}, kept)
        # Without a window it stays as it is, and the service says so.
        service = self.start()
        self.assertIn("Windows of an earlier start are still open (1 list): start with --window", service.messages())
        with service.client() as client:
            with self.assertRaises(ServiceError) as refused:
                client.feedback(impression, [0])
        self.assertEqual(refused.exception.status, 410)
        self.assertIn("or it is of an earlier start with --window", refused.exception.message)
        self.assertEqual(service.stop(), 0)
        # A shorter window closes it at once.
        service = self.start("--window", "1", *EVENTS)
        with service.client() as client:
            wait_until(lambda: client.stats()["rounds"] == 1, "the window closes")
            late = client.events(impression, [{"rank": 0, "type": "click"}])
            self.assertEqual((late["late"], late["duplicate"], late["round"]), (True, False, None))
            stats = client.stats()
            self.assertEqual((stats["late_events"], stats["open_impressions"]), (1, 0))
            for metric in ("late_events_total 1", "windows_closed_early_total 0"):
                self.assertIn(f"\nolrank_{metric}\n", client.metrics())
        self.assertEqual(service.stop(), 0)
        self.assertEqual((logged(self.state)[0]["clicks"], logged(self.state)[0]["rewards"]), ([1, 0, 1, 0, 0], [1, 0, 3, 0, 0]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
