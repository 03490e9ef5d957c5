"""`olrank serve` with LibTorch modules: it ranks and learns, continues to the same state after a stop and after a kill, starts from
the model file of a trial, and its own model file ranks elsewhere."""

import json
import os
import pathlib
import random
import unittest

from running_service import ServiceTest, Users, learned_state, olrank, succeed

FEATURES = 6
# A TorchScript file for that many features, by hand: nothing here can write one.
MODULES = ["residual", "layernorm", *filter(None, [os.environ.get("OLRANK_TEST_MODULE_FILE")])]


def ranker(module, kind="olranknet", *more):
    return ["--ranker", kind, "--features", FEATURES, "--network", "module", "--module", module, "--width", "6", *more]


class ModuleService(ServiceTest):
    def setUp(self):
        super().setUp()
        self.users = Users(2, FEATURES)
        self.draw = random.Random(1)

    def play(self, service, rounds):
        with service.client() as client:
            for _ in range(rounds):
                client.feedback(*self.users.ask(client, self.draw))
            client.wait_until_learned()

    def scores(self, model):
        data = self.folder / "data.txt"
        data.write_text("".join(
            f"0 qid:{query} " + " ".join(f"{k + 1}:{value}" for k, value in enumerate(doc["features"])) + "\n"
            for query, docs in enumerate(self.users.queries[:3]) for doc in docs))
        done = succeed("rank", "--model", model, "--data", data, "--format", "scores", "--out", "-", "--quiet")
        return [float(line) for line in done.split()]

    def test_it_learns_and_continues_to_the_same_state(self):
        for module in MODULES:
            with self.subTest(module=module):
                self.state = self.folder / pathlib.Path(module).name
                service = self.start(*ranker(module))
                self.play(service, 12)
                self.assertEqual(service.stop(), 0)
                service = self.start()
                self.play(service, 6)
                service.kill()
                service = self.start()
                with service.client() as client:
                    client.wait_until_learned()
                    model = client.model()
                self.assertEqual(service.stop(), 0)
                done = succeed("serve", "--state", self.state, "--learn-only", "--json")
                self.assertEqual(json.loads(done)["fingerprint"], learned_state(self.state)["fingerprint"])
                (self.folder / "served.safetensors").write_bytes(model)
                exported = self.folder / "exported.safetensors"
                succeed("export", "--state", self.state, "--to", "safetensors", "--out", exported)
                self.assertEqual(self.scores(exported), self.scores(self.folder / "served.safetensors"))

    def test_it_starts_from_the_model_of_a_trial(self):
        succeed("run", "--data", "synth:mslr-like?queries=20", "--ranker", "p2neurrank", "--members", "2", "--network", "module",
                "--module", "residual", "--width", "4", "--activation", "silu", "--rounds", "5", "--clicks", "perfect",
                "--seeds", "1", "--out", self.folder / "run")
        trained = next((self.folder / "run").rglob("model.safetensors"))
        service = self.start("--model", trained)
        with service.client() as client:
            first = client.model()
        self.assertEqual(service.stop(), 0)
        trained.unlink()
        service = self.start()  # the folder has all that it needs
        with service.client() as client:
            self.assertEqual(client.model(), first)
        self.assertEqual(service.stop(), 0)

    def test_another_module_is_refused(self):
        service = self.start(*ranker("residual"))
        self.assertEqual(service.stop(), 0)
        done = olrank("serve", "--state", self.state, "--port", "0", "--module", "layernorm")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("module is", done.stderr)


if __name__ == "__main__":
    unittest.main()
