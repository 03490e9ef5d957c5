"""`olrank serve` end to end: starts, rejected starts, stops, restarts and a full disk."""

import base64
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from running_service import (PROGRAM, Client, InFolder, RunningService, ServiceError, ServiceTest, Users, learned_state, logged, olrank,
                             succeed)

TREES = pathlib.Path(__file__).parents[1] / "models" / "files" / "trees"
RANKER = ["--ranker", "olranknet", "--features", "6", "--width", "6", "--steps", "4"]


def tensors_of(safetensors):
    """Name → floats, and the metadata."""
    (size,) = struct.unpack("<Q", safetensors[:8])
    header = json.loads(safetensors[8:8 + size])
    metadata = header.pop("__metadata__")
    data = safetensors[8 + size:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return tensors, metadata


class SilentService(unittest.TestCase):
    """A client's timeout bounds a request whose answer does not come, with the second try of a closed connection."""

    def setUp(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"

    def seconds_until_timeout(self, call, sentence):
        begin = time.monotonic()
        with self.assertRaisesRegex(TimeoutError, sentence):
            call()
        return time.monotonic() - begin

    def test_says_which_request_has_no_answer(self):
        with Client(self.url, timeout=0.3) as client:
            seconds = self.seconds_until_timeout(client.stats, r"^GET /v1/stats: the service did not answer within 0.3 s \(timeout\)$")
            self.assertGreaterEqual(seconds, 0.29)
        with Client(self.url, timeout=60) as client:
            self.assertLess(self.seconds_until_timeout(lambda: client.wait_until_ready(0.3), "was not ready within 0.3 seconds"), 30)
        with self.assertRaises(ValueError):
            Client(self.url, timeout=0)

    def test_the_second_try_has_what_is_left(self):
        """The service answers once and closes the connection 0.6 s after the next request: what is left of the time is 0.4 s."""
        accepted = []

        def serve():
            connection, _ = self.server.accept()
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            connection.recv(65536)
            time.sleep(0.6)
            connection.close()
            accepted.append(self.server.accept())  # silent

        thread = threading.Thread(target=serve)
        thread.start()
        with Client(self.url, timeout=1) as client:
            self.assertEqual(client.stats(), {})
            seconds = self.seconds_until_timeout(client.stats, "did not answer within 1 s")
        thread.join()
        self.assertEqual(len(accepted), 1)
        accepted[0][0].close()
        self.assertLess(seconds, 1.5)  # two whole times would be 1.6


class RefusedStarts(InFolder):
    def test_leave_nothing_behind(self):
        state = self.folder / "state"
        for _ in self.refusals(f"serve --state {state}", "serve", state=state):
            self.assertFalse(state.exists())


class ServeCommand(ServiceTest):
    def path(self, name):
        return self.folder / name

    def refused(self, *arguments, code=2):
        port = () if "--port" in arguments else ("--port", "0")
        done = olrank("serve", *arguments, *port)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (code, "", 1), done.stderr)
        return done.stderr

    def test_a_taken_port_leaves_nothing_behind(self):
        port = self.start(*RANKER).url.rpartition(":")[2]
        fresh = self.path("nested") / "fresh"
        message = self.refused("--state", fresh, *RANKER, "--port", port, code=1)
        self.assertIn(f"127.0.0.1:{port} is already in use", message)
        self.assertFalse(fresh.parent.exists())
        old = self.path("old")
        self.assertEqual(self.start(*RANKER, state=old).stop(), 0)
        before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in old.iterdir()}
        self.refused("--state", old, "--port", port, code=1)
        self.assertEqual({file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in old.iterdir()}, before)

    def test_an_ordinary_user_gets_no_privileged_port(self):
        if int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80:
            self.skipTest("every user may listen on port 80 here")
        user = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []
        if user and not shutil.which("setpriv"):
            self.skipTest("root may listen on any port")
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(folder.rmdir)
        folder.chmod(0o777)
        done = subprocess.run([*user, PROGRAM, "serve", "--state", folder / "state", *RANKER, "--port", "80"],
                              capture_output=True, text=True, timeout=900)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("Port 80 is privileged: as an ordinary user, choose a --port from 1024 on", done.stderr)
        self.assertEqual(list(folder.iterdir()), [])

    def test_metrics_describe_build_and_process(self):
        service = self.start("--features", "3")
        with service.client() as client:
            lines = client.metrics().splitlines()
        version = next(line for line in lines if line.startswith("olrank_build_info{"))
        self.assertIn(version.removeprefix('olrank_build_info{version="').removesuffix('"} 1'), olrank("--version").stdout)
        told = dict(line.split(" ") for line in lines if line.startswith("process_"))
        about = pathlib.Path(f"/proc/{service.process.pid}")
        pages = int((about / "statm").read_text().split()[1])
        self.assertLess(abs(float(told["process_resident_memory_bytes"]) / (pages * resource.getpagesize()) - 1), 0.2)
        self.assertLess(abs(float(told["process_start_time_seconds"]) - time.time()), 120)
        self.assertGreater(float(told["process_cpu_seconds_total"]), 0)
        self.assertGreater(float(told["process_virtual_memory_bytes"]), float(told["process_resident_memory_bytes"]))
        self.assertLess(float(told["process_open_fds"]), float(told["process_max_fds"]))

    def test_keeps_ranking_when_the_disk_is_full(self):
        def small_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))

        service = self.start(*RANKER, preexec_fn=small_disk)
        users, draw = Users(2, 6), random.Random(3)
        accepted = 0
        with service.client() as client:
            with self.assertRaises(ServiceError) as refused:
                for _ in range(50):
                    impression, clicks = users.ask(client, draw)
                    client.feedback(impression, clicks)
                    accepted += 1
            self.assertEqual(refused.exception.status, 507)
            self.assertGreater(accepted, 1)
            self.assertEqual(len(client.rank("q", users.queries[0])["docs"]), 10)
            self.assertEqual(client.stats()["log_rounds"], accepted)
            # Once there is space again, the same feedback is accepted.
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.assertIn("olrank_feedback_rejected_by_disk 1\n", client.metrics())
            self.assertEqual(client.feedback(impression, clicks)["round"], accepted + 1)
            self.assertIn("olrank_feedback_rejected_by_disk 0\n", client.metrics())
        self.assertEqual(len(logged(self.state)), accepted + 1)
        self.assertEqual(len(list(self.state.glob("impressions-*"))), 1)
        # A disk that is full at the end costs the checkpoint, and the service says so, in a file that is smaller than the limit.
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (2500, resource.RLIM_INFINITY))
        self.assertEqual(service.stop(), 1)
        self.assertIn("The service has stopped, but not all of it was kept. ", service.messages())
        self.assertIn("the next start learns the records behind it from the log again.", service.messages())
        told = [line for line in service.messages().splitlines() if "Feedback is" in line]
        self.assertEqual(len(told), 2, told)
        self.assertIn("Feedback is rejected until there is space", told[0])
        self.assertIn("Feedback is accepted again; 1 was rejected.", told[1])

    def test_starts_from_a_model_with_its_normalisation(self):
        data, run = self.path("data"), self.path("run")
        self.assertEqual(olrank("data", "synth", "small?queries=30", "--out", data).returncode, 0)
        succeed("run", "--data", data, "--data-normalise", "zscore", "--ranker", "olranknet", "--width", "6", "--rounds",
                "40", "--clicks", "perfect", "--out", run, "--quiet")
        model = next(run.glob("trials/**/model.safetensors"))
        tensors, metadata = tensors_of(model.read_bytes())
        features = json.loads(metadata["normalisation"])["features"]
        service = self.start("--model", model, "--ranker", "olranknet")
        self.assertIn("\nlambda = 1000.0\n", self.state.joinpath("service.toml").read_text())  # that of rankers that start from a model
        with service.client() as client:
            given, about = tensors_of(client.model())
            self.assertEqual(given, tensors)
            self.assertEqual(about["normalisation"], metadata["normalisation"])
            self.assertEqual(about["ranker"], "olranknet")
        self.play(service, 20, features=features)
        with service.client() as client:
            self.assertNotEqual(tensors_of(client.model())[0], tensors)
        self.assertEqual(service.stop(), 0)
        self.assertEqual(self.start("--model", model.parent).stop(), 0)  # the same model, by its trial's folder
        learned_state(self.state)
        # Another model makes another service.
        other = self.path("other.safetensors")
        changed = bytearray(model.read_bytes())
        changed[-1] ^= 1
        other.write_bytes(changed)
        self.assertIn("model is ", self.refused("--state", self.state, "--model", other))
        for flags, difference in ((["--width", "8"], "width is 6, not 8"), (["--set", "ranker.depth=3"], "depth is 2, not 3")):
            self.assertIn(f"has another network ({difference})",
                          self.refused("--state", self.path("d"), "--model", model, "--ranker", "olranknet", *flags))
        self.assertIn("cannot start from a model",
                      self.refused("--state", self.path("e"), "--model", model, "--ranker", "p2linrank"))

    def test_a_click_model_starts_from_an_additive_model(self):
        additive = self.path("additive.safetensors")
        header = json.dumps({"__metadata__": {"architecture": "additive"},
                             "linear.weight": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
                             "cosines.weight": {"dtype": "F32", "shape": [3, 1], "data_offsets": [4, 16]}}).encode()
        additive.write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
        for kind in ("pairrank", "olranknet"):
            self.assertIn("holds an additive model, from which only clickgp starts",
                          self.refused("--state", self.state, "--model", additive, "--ranker", kind))
        run = self.path("run")
        succeed("run", "--data", "synth:small?queries=30", "--ranker", "clickgp", "--rounds", "20", "--clicks", "perfect",
                "--out", run, "--quiet")
        saved = next(run.glob("trials/**/model.safetensors"))
        for number, (model, features) in enumerate(((additive, 1), (saved, 10))):
            service = self.start("--model", model, state=self.path(f"service{number}"))
            with service.client() as client:
                about = tensors_of(client.model())[1]
            self.assertEqual((about["ranker"], json.loads(about["normalisation"])["features"]), ("clickgp", features))
            self.play(service, 5, features=features)
            self.assertEqual(service.stop(), 0)
        pairs = "[[1,0],[0,0],[1,1]]"
        header = json.dumps({"__metadata__": {"architecture": "additive", "products": pairs},
                             "linear.weight": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
                             "cosines.weight": {"dtype": "F32", "shape": [3, 2], "data_offsets": [8, 32]},
                             "products.weight": {"dtype": "F32", "shape": [1, 3], "data_offsets": [32, 44]}}).encode()
        additive.write_bytes(struct.pack("<Q", len(header)) + header + bytes(32) + struct.pack("<3f", 0.5, 0.25, 0.75))
        service = self.start("--model", additive, state=self.path("service-products"))
        with service.client() as client:
            tensors, about = tensors_of(client.model())
        self.assertEqual(service.stop(), 0)
        self.assertEqual(about["products"], pairs)
        first, second, third = tensors["products.weight"]
        self.assertAlmostEqual(first / second, 2.0, places=5)
        self.assertAlmostEqual(third / second, 3.0, places=5)

    def test_a_click_model_starts_from_trees(self):
        text = (TREES / "lightgbm-plain.txt").read_text()
        trees = self.path("model.txt")
        trees.write_text(text[:text.index("Tree=1")])
        self.assertIn("It is cut short after 1 tree.", self.refused("--state", self.state, "--model", trees, code=1))
        trees.write_text(text)
        self.assertIn("holds trees of LightGBM or XGBoost, from which only clickgp starts",
                      self.refused("--state", self.state, "--model", trees, "--ranker", "olranknet"))
        self.assertIn("contradicts the model", self.refused("--state", self.state, "--model", trees, "--normalise", "query-minmax"))
        service = self.start("--model", trees)
        self.play(service, 5, features=4)
        with service.client() as client:
            learned = client.model()
        about = tensors_of(learned)[1]
        self.assertEqual((about["ranker"], json.loads(about["normalisation"])["kind"]), ("clickgp", "none"))
        self.assertEqual(base64.b64decode(about["start_model"]).decode(), text)
        self.assertEqual(service.stop(), 0)
        trees.unlink()  # the folder has all that it needs
        service = self.start()
        with service.client() as client:
            self.assertEqual(client.model(), learned)
        self.assertEqual(service.stop(), 0)
        saved = self.path("learned.safetensors")
        saved.write_bytes(learned)
        self.assertIn("cannot hold a model that adds to the score",
                      olrank("export", saved, "--to", "onnx", "--out", self.path("learned.onnx")).stderr)

    def test_shares_the_log_format_with_replays(self):
        data = self.path("data")
        self.assertEqual(olrank("data", "synth", "small?queries=30", "--out", data).returncode, 0)
        features, counts = 0, {}
        for line in (data / "train.txt").read_text().splitlines():
            words = line.split("#")[0].split()
            counts[words[1][4:]] = counts.get(words[1][4:], 0) + 1
            features = max([features, *(int(word.split(":")[0]) for word in words[2:])])
        draw = random.Random(4)
        recorded = self.path("recorded.jsonl")
        with open(recorded, "w", encoding="utf-8") as lines:
            for _ in range(60):
                qid = draw.choice(sorted(counts))
                shown = draw.sample(range(counts[qid]), min(5, counts[qid]))
                line = {"qid": qid, "shown": shown, "clicks": [draw.randrange(2) for _ in shown]}
                if draw.randrange(2):
                    line["rewards"] = [click * draw.randrange(1, 4) for click in line["clicks"]]
                lines.write(json.dumps(line) + "\n")
        # Matched pairs, and copies for rewards that are not whole, are drawn with the keys of a trial or of a service, so their
        # models would differ.
        kind = ["--ranker", "pairrank", "--pairs", "adjacent"]
        done = succeed("serve", "--state", self.state, *kind, "--features", features, "--import-log", recorded, "--import-data",
                       data, "--learn-only", "--json")
        learned = json.loads(done)
        self.assertEqual(learned["rounds"], 60)
        with self.start().client() as client:
            by_service = tensors_of(client.model())[0]
        # The service's own log replays like the imported one.
        for name, replay in (("run1", recorded), ("run2", self.state / "feedback.jsonl")):
            succeed("run", "--data", data, *kind, "--replay", replay, "--rounds", "60", "--out", self.path(name),
                    "--quiet")
            by_run, _ = tensors_of(next(self.path(name).glob("trials/**/model.safetensors")).read_bytes())
            self.assertEqual(by_run.keys(), by_service.keys())
            for tensor, values in by_run.items():
                for ours, theirs in zip(by_service[tensor], values):
                    self.assertAlmostEqual(ours, theirs, delta=1e-4)
        self.services[-1].kill()
        self.assertIn("already has a log", self.refused("--state", self.state, "--import-log", recorded, "--import-data", data))
        self.assertIn("recorded.jsonl:1:1: The line has no 'inputs'",
                      self.refused("--state", self.path("f"), *kind, "--features", features, "--import-log", recorded, code=1))

    MODULES = {module: ["olranknet", "--network", "module", "--module", module] for module in ("attention", "residual", "layernorm")}

    def test_every_kind_learns_and_goes_on_after_a_stop_and_a_kill(self):
        for kind, *more in (["pairrank"], ["p2linrank"], ["p2neurrank"], ["ollambdarank"], ["pdgd"], ["ranknet"], *self.MODULES.values()):
            with self.subTest(kind=kind, more=more):
                state = self.path(f"{kind}{''.join(more[3:])}")
                width = ["--width", "6", "--steps", "3"] if kind in ("p2neurrank", "ollambdarank", "olranknet") else []
                service = self.start("--ranker", kind, "--features", "6", *width, *more, state=state)
                stats = self.play(service, 25)
                self.assertGreater(stats["pairs"], 3)
                self.assertEqual(service.stop(), 0)
                service = self.start(state=state)
                with service.client() as client:
                    self.assertEqual(client.stats()["fingerprint"], stats["fingerprint"])
                fingerprint = self.play(service, 6, seed=3)["fingerprint"]
                service.kill()
                self.assertEqual(learned_state(state)["fingerprint"], fingerprint)
                # Scores of lists depend on the documents that were not shown.
                reads_all = kind == "pdgd" or "attention" in more
                self.assertEqual(all("unshown" in record for record in logged(state)), reads_all)

    def test_client_example_runs(self):
        service = self.start(*RANKER, "--token-file", self.token())
        client = pathlib.Path(__file__).resolve().parents[2] / "clients" / "python" / "olrank_client.py"
        done = subprocess.run([sys.executable, client, service.url, "--token-file", self.token(), "--rounds", "100"],
                              capture_output=True, text=True, timeout=900)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("round 100:", done.stdout)
        self.assertEqual(json.loads(done.stdout[done.stdout.index("{"):])["rounds"], 100)
        with self.assertRaises(ServiceError) as refused:
            Client(service.url).stats()
        self.assertEqual(refused.exception.status, 401)
        for arguments, sentence in (([service.url], "Name the file with its token"), (["http://127.0.0.1:1"], "gives no answer"),
                                    ([service.url, "--token-file", self.path("none")], "cannot be read")):
            done = subprocess.run([sys.executable, client, *arguments], capture_output=True, text=True, timeout=900)
            self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1), done.stderr)
            self.assertIn(sentence, done.stderr)

    def test_exports_the_model_of_a_stopped_service(self):
        for kind, *more in (["olranknet"], ["p2neurrank"], ["pairrank"], self.MODULES["residual"]):
            kind, flags = "".join([kind, *more[3:]]), ["--ranker", kind, *more]
            state, model = self.path(f"state-{kind}"), self.path(f"{kind}.safetensors")
            service = self.start(*flags, "--features", "6", state=state)
            self.play(service, 25)
            with service.client() as client:
                client.checkpoint()
            self.play(service, 10, seed=2)
            with service.client() as client:
                model.write_bytes(client.model())
            done = olrank("export", "--state", state, "--to", "c", "--out", self.path("model.c"))
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn(f"in use by process {service.process.pid}.", done.stderr)
            self.assertIn("/v1/model", done.stderr)
            service.kill()  # so that the checkpoint lacks ten rounds
            before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in state.iterdir()}
            for number, form in enumerate(("safetensors", "pt", "onnx", "json", "c")[:1 if more else 5]):
                with self.subTest(kind=kind, form=form):
                    one, two = self.path(f"{kind}-{number}") / "model", self.path(f"{kind}-{number}-file") / "model"
                    for path, source in ((one, ("--state", state)), (two, (model,))):
                        path.parent.mkdir()
                        succeed("export", *source, "--to", form, "--out", path)
                    self.assertEqual(one.read_bytes(), two.read_bytes())
            self.assertEqual({file: (file.read_bytes(), file.stat().st_mtime_ns) for file in state.iterdir()}, before)
        for arguments, code, problem in (
                (("--state", self.path("none")), 1, "No such file"), (("--state", self.folder), 2, "contains no service"),
                ((model, "--state", state), 2, "exclude each other"), ((), 2, "or a service's --state")):
            InFolder.refused(self, code, problem, "export", *arguments, "--to", "c", "--out", self.path("model.c"))
        self.assertFalse(self.path("none").exists() or self.path("model.c").exists())

    def test_a_snapshot_ranks_as_its_service_did(self):
        users, service = Users(3, 4, docs=6, queries=4), self.start("--features", "4")
        data, run = self.path("data.txt"), self.path("run.txt")
        # Whatever its features are, the user of query N likes document N.
        data.write_text("".join(f"{int(doc['id'] == f'd{query}')} qid:q{query} "
                                f"{' '.join(f'{k}:{value}' for k, value in enumerate(doc['features'], 1))} # docid = {doc['id']}\n"
                                for query, docs in enumerate(users.queries) for doc in docs))

        def served(service, **options):
            with service.client() as client:
                answers = [client.rank(f"q{query}", docs, k=6, **options) for query, docs in enumerate(users.queries)]
            return [[doc["id"] for doc in answer["docs"]] for answer in answers]

        def ranked(model):
            said = succeed("rank", "--model", model, "--data", data, "--out", "-", "--cache", "none")
            lines = [line.split() for line in said.splitlines()]
            return [[line[2] for line in lines if line[0] == f"q{query}"] for query in range(4)]

        with service.client() as client:
            for number in range(60):
                answer = client.rank(f"q{number % 4}", users.queries[number % 4], k=6)
                client.feedback(answer["impression"], [rank for rank, doc in enumerate(answer["docs"]) if doc["id"] == f"d{number % 4}"])
            client.wait_until_learned()
            model = client.model()
        expected = served(service, explore=False)
        self.assertEqual([docs[0] for docs in expected], ["d0", "d1", "d2", "d3"])
        got, exported, few = (self.path(f"{name}.snapshot") for name in ("got", "exported", "few"))
        with urllib.request.urlopen(service.url + "/v1/snapshot") as answer:
            got.write_bytes(answer.read())
        self.assertEqual(service.stop(), 0)
        self.assertEqual(ranked(got), expected)
        succeed("export", "--state", self.state, "--to", "snapshot", "--out", exported)
        metrics = json.loads(succeed("eval", "--data", data, "--model", exported, "--json"))["metrics"]
        self.assertEqual(metrics["mrr"], 1.0)
        said = olrank("export", exported, "--to", "snapshot", "--memory-limit", "0.002", "--out", few)
        self.assertIn("remembers 1 of 4 saved queries, those learned last", said.stderr)
        self.assertEqual(ranked(few)[3], expected[3])  # q3 came last
        succeed("export", got, "--to", "safetensors", "--out", self.path("model"))
        self.assertEqual(tensors_of(self.path("model").read_bytes())[0], tensors_of(model)[0])

        # An arm shows that order. A service goes on from there, and needs the file no more, as do its followers.
        arm = self.start("--arms", "old=100,learner=0", "--arm-model", f"old={got}", "--features", "4", state=self.path("arm"))
        self.assertEqual(served(arm), expected)
        self.assertEqual(arm.stop(), 0)
        second = self.start("--model", got, state=self.path("second"))
        got.unlink()
        self.assertEqual(served(second, explore=False), expected)
        follower = RunningService(None, "--follow", second.url)
        self.services.append(follower)
        with follower.client() as client:
            client.wait_until_ready()
        self.assertEqual(served(follower), expected)
        exported.write_bytes(exported.read_bytes()[:-9])
        for arguments, code, problem in (
                (("rank", "--model", exported, "--data", data, "--out", run), 1, "take the snapshot again."),
                (("export", self.path("model"), "--to", "snapshot", "--out", run), 2, "a model file has no memory of documents")):
            InFolder.refused(self, code, problem, *arguments)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main(verbosity=2)
