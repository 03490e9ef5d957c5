"""`olrank serve --device cuda` on an emulated GPU: users side by side, a kill, and what is refused."""

import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = pathlib.Path(os.environ["OLRANK_BUILD"], "bin", "tests", "emulated_olrank")
os.environ["OLRANK_PROGRAM"] = str(PROGRAM)
os.environ["OLRANK_EMULATED_GPUS"] = "Card=8GB,Card=8GB"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
import running_service  # noqa: E402

NETWORK = ["--features", 5, "--device", "cuda", "--ranker", "olranknet", "--width", 4, "--steps", 3]


def settled(client, rounds):
    """The statistics once all rounds are learned."""
    for _ in range(200):
        stats = client.stats()
        if stats["rounds"] == rounds:
            return stats
        time.sleep(0.05)
    raise AssertionError(f"{stats['rounds']} of {rounds} rounds are learned")


class ServiceOnCard(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.state = pathlib.Path(temporary.name, "state")

    def play(self, service, users, visits):
        world = running_service.Users(3, 5)
        failures = []

        def visit(seed):
            client, draw = service.client(), random.Random(seed)
            try:
                for _ in range(visits):
                    ranking, clicks = world.read(client, draw)
                    assert len(ranking["docs"]) == 5, ranking
                    client.feedback(ranking["impression"], clicks)
            except Exception as error:  # noqa: BLE001
                failures.append(error)

        threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(users)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_users_side_by_side_and_a_kill(self):
        service = running_service.RunningService(self.state, *NETWORK)
        self.play(service, 6, 12)
        before = settled(service.client(), 72)
        self.assertGreater(before["figures"]["device_bytes"], 0)
        model = service.client().model()
        service.kill()
        self.assertEqual(running_service.learned_state(self.state)["fingerprint"], before["fingerprint"])
        again = running_service.RunningService(self.state, "--device", "cuda:1")
        self.assertEqual(settled(again.client(), 72)["fingerprint"], before["fingerprint"])
        self.assertEqual(again.client().model(), model)
        self.play(again, 2, 4)
        settled(again.client(), 80)
        self.assertEqual(again.stop(), 0)

    def test_refusals(self):
        refusals = [
            (["--features", 5, "--device", "cuda"], "clickgp"),
            ([*NETWORK[:2], *NETWORK[4:], "--device", "cuda:7"], "There is no cuda:7"),
            ([*NETWORK, "--max-docs", 70000], "65535"),
            ([*NETWORK, "--log", "redis://127.0.0.1:1"], "--log"),
        ]
        for arguments, word in refusals:
            with self.subTest(word):
                done = running_service.olrank("serve", "--state", self.state, "--port", 0, *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse(self.state.exists())
        running_service.RunningService(self.state, *NETWORK).stop()
        moved = running_service.olrank("serve", "--state", self.state, "--port", 0, "--device", "cpu")
        self.assertEqual(moved.returncode, 2)
        self.assertIn('device is "cuda", not "cpu"', moved.stderr)


if __name__ == "__main__":
    unittest.main()
