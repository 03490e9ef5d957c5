"""`olrank serve --device cuda` on an emulated GPU: users side by side, a kill, and what is refused."""

import os
import pathlib
import random
import sys
import threading
import unittest

os.environ["OLRANK_PROGRAM"] = str(pathlib.Path(os.environ["OLRANK_BUILD"], "bin", "tests", "emulated_olrank"))
os.environ["OLRANK_EMULATED_GPUS"] = "Card=8GB,Card=8GB"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from running_service import ServiceTest, Users, learned_state  # noqa: E402

NETWORK = ["--features", 5, "--device", "cuda", "--ranker", "olranknet", "--width", 4, "--steps", 3]


class ServiceOnCard(ServiceTest):
    def play_together(self, service, users, visits):
        """The statistics once all rounds of users side by side are learned."""
        world = Users(3, 5)
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
        return service.client().wait_until_learned()

    def test_users_side_by_side_and_a_kill(self):
        service = self.start(*NETWORK)
        before = self.play_together(service, 6, 12)
        self.assertEqual(before["rounds"], 72)
        self.assertGreater(before["figures"]["device_bytes"], 0)
        model = service.client().model()
        service.kill()
        self.assertEqual(learned_state(self.state)["fingerprint"], before["fingerprint"])
        again = self.start("--device", "cuda:1")
        self.assertEqual(again.client().wait_until_learned()["fingerprint"], before["fingerprint"])
        self.assertEqual(again.client().model(), model)
        self.assertEqual(self.play_together(again, 2, 4)["rounds"], 80)
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
                self.assertIn(word, self.refused(*arguments))
        self.assertFalse(self.state.exists())
        self.start(*NETWORK).stop()
        self.assertIn('device is "cuda", not "cpu"', self.refused("--device", "cpu"))


if __name__ == "__main__":
    unittest.main()
