"""Several processes on one log: learner, standby and replicas with a Redis server, and followers over HTTP. Any replica takes the
feedback of any list, what is learned is what one process would have learned, and each wrong start ends with one sentence."""

import http.server
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

from running_service import Client, RunningService, ServiceError, ServiceTest, Users, free_port, learned_state, logged, olrank, wait_until

SETTINGS = ["--ranker", "pairrank", "--features", "4", "--cutoff", "5"]


class Redis:
    def __init__(self, folder, *arguments, tls=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.port = free_port()
        listen = ["--port", "0", "--tls-port", str(self.port), *tls] if tls else ["--port", str(self.port)]
        self.command = ["redis-server", *listen, "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "", "--appendonly",
                        "yes", "--appendfsync", "always", "--logfile", str(self.folder / "log"), *arguments]
        self.url = f"redis{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command)

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        wait_until(answers, "redis-server does not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=900)

    def keep(self):
        """Keeps what the disk has now, for set_back()."""
        shutil.copytree(self.folder / "appendonlydir", self.folder / "kept")

    def set_back(self):
        """As after a failover to a replica behind, or from a backup."""
        self.kill()
        shutil.rmtree(self.folder / "appendonlydir")
        shutil.copytree(self.folder / "kept", self.folder / "appendonlydir")
        self.start()

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *map(str, words)], capture_output=True, text=True, timeout=900)
        return done.stdout.strip()


@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not installed")
class ReplicasTest(ServiceTest):
    def start_redis(self, *arguments, **options):
        server = Redis(self.folder / f"redis{len(list(self.folder.glob('redis*')))}", *arguments, **options)
        self.addCleanup(lambda: server.process.poll() is None and server.kill())
        return server

    def start(self, state, *arguments, **options):
        self.services.append(RunningService(state and self.folder / state, *arguments, **options))
        return self.services[-1]

    def refused(self, *arguments, code=1, env=None):
        done = olrank("serve", "--port", "0", *arguments, env={**os.environ, **(env or {})})
        # A server on a busy machine may answer late: the process says that it waits, and asks again.
        said = [line for line in done.stderr.splitlines(True) if not line.startswith("Waiting:")]
        self.assertEqual((done.returncode, done.stdout, len(said)), (code, "", 1), done.stderr)
        return said[0]

    def test_what_replicas_collect_is_what_one_process_would_learn(self):
        log = ["--log", self.start_redis().url + "/shop"]
        learner = self.start("learner", *log, *SETTINGS, "--role", "learner")
        standby = self.start("standby", *log, "--role", "learner")  # with the settings of the prefix
        replicas = [self.start(None, *log, "--role", "replica") for _ in range(2)]
        with learner.client() as client, self.assertRaises(ServiceError) as refusal:
            client.rank("q", [{"id": "a", "features": [1, 2, 3, 4]}])
        self.assertIn("only learns (--role learner)", str(refusal.exception))
        acknowledged, problems = {}, []

        def use(seed):
            users, draw = Users(3, 4, docs=8, queries=10), random.Random(seed)
            try:
                with replicas[0].client() as first, replicas[1].client() as second:
                    for turn in range(60):
                        one, other = (first, second) if turn % 2 == 0 else (second, first)
                        impression, clicks = users.ask(one, draw)
                        acknowledged[impression] = other.feedback(impression, clicks, attempts=5)["round"]
                        self.assertTrue(first.feedback(impression, clicks, attempts=5)["duplicate"])
            except Exception as error:
                problems.append(error)
        threads = [threading.Thread(target=use, args=[seed]) for seed in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        learner.kill()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.assertEqual(sorted(acknowledged.values()), list(range(1, 181)))
        # The standby goes on publishing, and replicas rank with what it has learned.
        token = self.folder / "token"
        token.write_text("secret\n")
        learner = self.start("learner", *log, "--role", "learner", "--token-file", token)
        for service, word in ((standby, None), (learner, "secret")):
            with service.client(token=word) as client:
                wait_until(lambda: "olrank_archived_rounds_total 180\n" in client.metrics(), "records are not archived")
                client.wait_until_learned()
        with replicas[0].client() as client:
            wait_until(lambda: client.stats()["rounds"] == 180, "the replica has an old model")
            stats = client.stats()
            self.assertEqual((stats["log_rounds"], stats["fingerprint"]), (180, None))
            mine = client.rank("q", Users(3, 4, docs=8).queries[0], k=5, explore=False)
        with learner.client(token="secret") as client, replicas[1].client() as other:
            wait_until(lambda: other.stats()["rounds"] == 180, "the replica has an old model")
            self.assertEqual(other.rank("q", Users(3, 4, docs=8).queries[0], k=5, explore=False)["docs"], mine["docs"])
            fingerprint = client.stats()["fingerprint"]
        self.assertIn("answers 401", self.refused("--follow", learner.url, "--wait-seconds", 0))
        follower = self.start(None, "--follow", learner.url, "--follow-token-file", token)
        with follower.client() as client:
            wait_until(client.is_ready, "the follower has no model")
            ranked = client.rank("q", Users(3, 4, docs=8).queries[0], k=5)
            self.assertEqual((ranked["docs"], ranked["impression"]), (mine["docs"], None))
            with self.assertRaises(ServiceError) as refusal:
                client.feedback("0123456789abcdef-1", [])
            self.assertEqual(refusal.exception.status, 404)
        for service in self.services[1:]:
            self.assertEqual(service.stop() if service.process.poll() is None else 0, 0)
        archives = [(self.folder / name / "feedback.jsonl").read_bytes() for name in ("learner", "standby")]
        self.assertEqual(*archives)
        self.assertEqual({line["impression"]: line["round"] for line in logged(self.folder / "learner")}, acknowledged)
        alone = learned_state(self.folder / "learner")
        self.assertEqual((alone["rounds"], alone["fingerprint"]), (180, fingerprint))

    def test_documents_are_stored_by_any_process_and_known_to_all(self):
        server = self.start_redis()
        log = ["--log", server.url + "/shop"]
        learner = self.start("learner", *log, *SETTINGS, "--role", "learner")
        replicas = [self.start(None, *log, "--role", "replica") for _ in range(2)]
        draw, ids, stored = random.Random(4), [f"d{number}" for number in range(30)], {}

        def put(service, name):
            """Stores more and more versions until its process is killed."""
            try:
                with service.client() as client:
                    for value in range(10**6):
                        stored[name] = client.put_docs([{"id": name, "features": [value, 0, 0, 0]}])[0]
            except (OSError, ServiceError):
                pass

        def play(first, second, rounds):
            for client in (first, second):
                client.wait_until_ready()
            for turn in range(rounds):
                one, other = (first, second) if turn % 2 == 0 else (second, first)
                changed = draw.sample(ids, 3)
                one.put_docs([{"id": id, "features": [round(draw.random(), 3) for _ in range(4)]} for id in changed])
                wait_until(lambda: other.doc(changed[0]) == one.doc(changed[0]), "the other replica has an old version")
                answer = other.rank(f"q{turn % 4}", draw.sample(ids, 12), k=4)
                one.feedback(answer["impression"], [answer["docs"][turn % 4]["id"]], attempts=5)

        with learner.client() as client:  # which ranks no lists, and stores documents all the same
            client.put_docs([{"id": id, "features": [round(draw.random(), 3) for _ in range(4)]} for id in ids])
        with replicas[0].client() as first, replicas[1].client() as second:
            wait_until(lambda: second.stats()["documents"] == 30, "the replica has no documents")
            with self.assertRaises(ServiceError) as refusal:
                second.rank("q", ["d1", "unknown"])
            self.assertEqual((refusal.exception.status, refusal.exception.field), (422, "docs"))
            self.assertIn("One document is not stored: 'unknown'.", str(refusal.exception))
            self.assertIn("known here in a moment", str(refusal.exception))
            play(first, second, 20)
            learner.kill()
            play(first, second, 10)  # without a learner
        threads = [threading.Thread(target=put, args=(replica, name)) for replica, name in zip(replicas, "ab")]
        learner = self.start("learner", *log, "--role", "learner")
        threads.append(threading.Thread(target=put, args=(learner, "c")))
        for thread in threads:
            thread.start()
        wait_until(lambda: len(stored) == 3 and min(stored.values()) > 3, "nothing is stored")
        for service in (*replicas, learner):
            service.kill()
        for thread in threads:
            thread.join()
        learner = self.start("learner", *log, "--role", "learner")
        replicas = [self.start(None, *log, "--role", "replica") for _ in range(2)]
        with replicas[0].client() as first, replicas[1].client() as second:
            for name, version in stored.items():  # the last one may have been stored without its acknowledgement
                self.assertIn(first.doc(name)["version"] - version, (0, 1))
                self.assertEqual(first.doc(name), second.doc(name))
            self.assertEqual(first.delete_docs(["a", "b", "c"]), 3)
            play(first, second, 10)
            server.kill()
            with self.assertRaises(ServiceError) as refusal:
                first._json("PUT", "/v1/docs", {"id": "d1", "features": [1, 2, 3, 4]})
            self.assertEqual((refusal.exception.status, refusal.exception.retry_after), (503, 1))
            self.assertEqual(len(first.rank("q", ids[:3])["docs"]), 3)
            server.start()
            wait_until(lambda: "olrank_log_away 0" in first.metrics() and "olrank_log_away 0" in second.metrics(), "the server stays away")
            play(first, second, 10)
        with learner.client() as client:
            wait_until(lambda: client.stats()["rounds"] == 50, "records are not learned")
            fingerprint = client.stats()["fingerprint"]
        standby = self.start("standby", *log, "--role", "learner")
        with standby.client() as client:
            wait_until(lambda: client.stats()["rounds"] == 50, "records are not learned")
            self.assertEqual(client.stats()["fingerprint"], fingerprint)
            self.assertEqual(client.stats()["documents"], 30)
        for service in (learner, standby):
            self.assertEqual(service.stop(), 0)
        for name in ("feedback", "documents"):
            self.assertEqual(*((self.folder / folder / f"{name}.jsonl").read_bytes() for folder in ("learner", "standby")))
        self.assertTrue(all("versions" in record for record in logged(self.folder / "learner")))
        self.assertEqual(learned_state(self.folder / "learner")["fingerprint"], fingerprint)  # of one process
        # The folder of one process and its documents become those of a prefix.
        alone = self.start("alone", *SETTINGS)
        with alone.client() as client:
            client.put_docs([{"id": id, "features": [1, 2, 3, 4]} for id in ids])
            client.feedback(client.rank("q", ids[:5])["impression"], [])
        alone.stop()
        self.start("alone", "--log", server.url + "/other")
        replica = self.start(None, "--log", server.url + "/other", "--role", "replica")
        with replica.client() as client:
            client.wait_until_ready()
            self.assertEqual(len(client.rank("q", ids, k=30)["docs"]), 30)
            wait_until(lambda: client.stats()["rounds"] == 1, "the list is not learned")

    def test_replicas_and_followers_have_the_counters_of_their_model(self):
        schema = self.folder / "schema.toml"
        schema.write_text("[[feature]]\nname = \"price\"\n[[feature]]\nname = \"rate\"\nkind = \"counter\"\nof = \"click-rate\"\n"
                          "prior = [1, 4]\n[[feature]]\nname = \"seen\"\nkind = \"counter\"\nof = \"views\"\nby = \"query\"\n")
        log, draw = ["--log", self.start_redis().url + "/shop"], random.Random(5)
        settings = ["--ranker", "pairrank", "--schema", schema, "--normalise", "none", "--cutoff", "4"]
        first = self.start("first", *log, *settings, "--arms", "learner=50,incumbent=50")  # learns and ranks
        replicas = [self.start(None, *log, "--role", "replica") for _ in range(2)]
        docs = [{"id": f"d{doc}", "features": {"price": doc / 8}} for doc in range(6)]
        ids = [doc["id"] for doc in docs]

        def play(services, begin, end):
            for round in range(begin, end):
                with services[round % len(services)].client() as client:
                    wait_until(lambda: client.stats()["rounds"] == round, "the model is old")
                    shown = client.rank(f"q{draw.randrange(3)}", docs, incumbent=ids)
                    client.feedback(shown["impression"], ids=[doc["id"] for doc in shown["docs"] if draw.random() < 0.4])
        play([first, *replicas], 0, 30)
        first.kill()
        standby = self.start("standby", *log)
        play([*replicas, standby], 30, 42)
        with standby.client() as client:
            fingerprint = client.wait_until_learned()["fingerprint"]
            follower = self.start(None, "--follow", standby.url)
            with follower.client() as other:
                other.wait_until_ready()
                lists = [one.rank("q1", docs, explore=False, incumbent=ids, user="u") for one in (client, other)]
            followed = {doc["id"]: doc["score"] for doc in lists[1]["docs"]}
            self.assertTrue(all(followed.get(doc["id"], doc["score"]) == doc["score"] for doc in lists[0]["docs"]))
        self.assertEqual(follower.stop(), 0)
        self.assertEqual(standby.stop(), 0)
        records = logged(self.folder / "standby")
        self.assertEqual(len(records), 42)
        for number, record in enumerate(records):
            before = records[:record["snapshot"]]
            self.assertEqual(len(before), number)  # each list had the newest model
            for doc, inputs in zip(record["shown"] + record.get("unshown", []), record["inputs"]):
                views = [one for one in before if doc in one["shown"]]
                clicks = sum(one["clicks"][one["shown"].index(doc)] for one in views)
                self.assertAlmostEqual(inputs[1], (clicks + 1) / (len(views) + 4), delta=1e-6)
                self.assertEqual(inputs[2], sum(one["qid"] == record["qid"] for one in views))
        self.assertEqual(learned_state(self.folder / "standby")["fingerprint"], fingerprint)

    def test_arms_windows_and_their_figures_are_those_of_all_replicas(self):
        log = ["--log", self.start_redis().url + "/shop"]
        learner = self.start("learner", *log, *SETTINGS, "--role", "learner", "--arms", "learner=50,incumbent=50", "--window",
                             "4", "--events", "click=1,cart=3")
        replicas = [self.start(None, *log, "--role", "replica") for _ in range(2)]
        docs, arms = Users(5, 4, docs=6).queries[0], {}
        with replicas[0].client() as first, replicas[1].client() as second:
            for client in (first, second):
                client.wait_until_ready()
            for user in range(60):
                for client in (first, second):
                    answer = client.rank("q", docs, k=5, user=f"u{user}", incumbent=[doc["id"] for doc in docs])
                    arms.setdefault(f"u{user}", set()).add(answer["arm"])
                    other = second if client is first else first
                    if user % 2 == 0:
                        other.events(answer["impression"], [{"id": answer["docs"][0]["id"], "type": "cart"}],
                                     attempts=5)
            self.assertEqual({len(shown) for shown in arms.values()}, {1})  # sticky
            self.assertEqual(set.union(*arms.values()), {"learner", "incumbent"})
            with learner.client() as client:
                wait_until(lambda: client.stats()["rounds"] == 120, "windows stay open")
                told = client.arms()
            self.assertEqual(sum(arm["lists"] for arm in told["arms"]), 120)
            self.assertEqual(sum(arm["reward"] for arm in told["arms"]), 60 * 3)
            wait_until(lambda: second.arms() == told, "the replica's figures differ")
        with self.start(None, "--follow", learner.url).client() as client:  # follows the learner alone
            client.wait_until_ready()
            self.assertIsNone(client.rank("q", docs, k=5)["impression"])
        # Other arms end the processes that have the earlier ones.
        learner.stop()
        self.start("learner", *log, "--role", "learner", "--arms", "none", "--window", "4", "--events", "click=1,cart=3")
        self.assertEqual(replicas[0].process.wait(timeout=900), 1)
        self.assertIn("The settings were replaced", replicas[0].messages())
        self.start(None, *log, "--role", "replica")

    def test_a_damaged_model_is_not_taken_for_the_newest(self):
        """Between the follower and the learner stands a server that damages every model but the first."""
        learner = self.start("learner", *SETTINGS)
        with urllib.request.urlopen(learner.url + "/v1/snapshot") as answer:
            model = answer.read()
        asked = []

        class Between(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.headers["If-None-Match"]
                asked.append(known)
                self.send_response(304 if known == '"damaged"' else 200)
                body = b"" if known == '"damaged"' else model if known is None else model[:100]
                self.send_header("ETag", '"good"' if known is None else '"damaged"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
        key, certificate = self.certificate()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        between.socket = tls.wrap_socket(between.socket, server_side=True)
        self.addCleanup(between.server_close)
        threading.Thread(target=between.serve_forever).start()
        self.addCleanup(between.shutdown)
        url = f"https://127.0.0.1:{between.server_port}"
        self.assertIn("certificate verify failed", self.refused("--follow", url, "--wait-seconds", 0))
        with self.assertRaises(ssl.SSLCertVerificationError), Client(url) as client:
            client.model()
        with Client(url, ca=str(certificate)) as client:
            self.assertEqual(client.model(), model)
        asked.clear()
        follower = self.start(None, "--follow", url, "--follow-ca", certificate)
        with follower.client() as client:
            wait_until(lambda: len(asked) > 12, "the follower does not ask")
            self.assertTrue(client.is_ready())
            self.assertGreater(float(client.metrics().partition("\nolrank_model_age_seconds ")[2].split()[0]), 0.7)
        self.assertEqual(asked[:3], [None, '"good"', '"damaged"'])
        self.assertEqual(follower.messages().count("The last model stays: "), 1)
        self.assertEqual(follower.stop(), 0)

    def feed(self, client, lists, draw):
        """Answers lists, repeating what is refused meanwhile; their impressions."""
        given = []
        for _ in range(lists):
            impression, clicks = self.users.ask(client, draw)
            wait_until(lambda: self.takes(client, impression, clicks), "feedback is refused")
            given.append(impression)
        return given

    def takes(self, client, impression, clicks):
        try:
            return client.feedback(impression, clicks)["accepted"]
        except (ServiceError, OSError) as error:
            if getattr(error, "status", 503) != 503:
                raise
            return False

    def lists_of(self, name):
        return [line["impression"] for line in logged(self.folder / name)]

    def test_a_server_that_comes_back_with_less_loses_nothing(self):
        """The learner that runs sends the records again; one that was away while others went on is refused, names them, and
        follows again with --accept-loss."""
        self.users, draw = Users(6, 4, docs=6), random.Random(3)
        server = self.start_redis()
        log = ["--log", server.url + "/shop", "--wait-seconds", "20"]
        learner = self.start("learner", *log, *SETTINGS, "--role", "learner")
        standby = self.start("standby", *log, "--role", "learner")
        replica = self.start(None, *log, "--role", "replica")
        with replica.client() as client, learner.client() as told, standby.client() as other:
            wait_until(client.is_ready, "the replica has no model")
            given = self.feed(client, 20, draw)
            server.keep()
            given += self.feed(client, 10, draw)
            wait_until(lambda: other.stats()["rounds"] == told.stats()["rounds"] == 30, "records are not learned")
            server.set_back()
            given += self.feed(client, 10, draw)
            wait_until(lambda: other.stats()["rounds"] == told.stats()["rounds"] == 40, "records are not learned")
            self.assertEqual(other.stats()["fingerprint"], told.stats()["fingerprint"])
            self.assertIn("sending it records 21 to 30 again", learner.messages() + standby.messages())
            server.ask("del", "shop:rounds")
            given += self.feed(client, 1, draw)
            wait_until(lambda: other.stats()["rounds"] == told.stats()["rounds"] == 41, "records are not learned")
        for name in ("learner", "standby"):
            self.assertEqual(self.lists_of(name), given)
        # The standby is away for the next ten, and then the server and the learner are: the standby goes on without them.
        standby.stop()
        shutil.rmtree(server.folder / "kept")
        server.keep()
        with replica.client() as client, learner.client() as told:
            given += self.feed(client, 10, draw)
            wait_until(lambda: told.stats()["rounds"] == 51, "records are not learned")
        learner.stop()
        replica.kill()
        server.set_back()
        standby = self.start("standby", *log, "--role", "learner")
        replica = self.start(None, *log, "--role", "replica")
        with replica.client() as client:
            wait_until(client.is_ready, "the replica has no model")
            given += self.feed(client, 5, draw)
        refusal = olrank("serve", "--port", "0", "--state", self.folder / "learner", *log, "--role", "learner")
        self.assertEqual(refusal.returncode, 1)
        self.assertIn("without records 42 to 51 of this log", refusal.stderr)
        self.assertEqual(refusal.stderr.count("was sent to the server again, as record"), 10)
        learner = self.start("learner", *log, "--role", "learner", "--accept-loss")
        with learner.client() as told, standby.client() as other:
            wait_until(lambda: other.stats()["rounds"] == told.stats()["rounds"] == 56, "records are not learned")
            self.assertEqual(other.stats()["fingerprint"], told.stats()["fingerprint"])
        self.assertEqual(self.lists_of("learner"), self.lists_of("standby"))
        self.assertEqual(sorted(self.lists_of("learner")), sorted(given))
        # All data are gone: the standby, which has fewer records, begins the stream, and the learner completes it.
        learner.stop()
        standby.stop()
        replica.kill()
        (self.folder / "standby" / "feedback.jsonl").write_bytes(b"".join(
            (self.folder / "standby" / "feedback.jsonl").read_bytes().splitlines(True)[:50]))
        (self.folder / "standby" / "checkpoint").unlink()
        server.ask("flushall")
        standby = self.start("standby", *log, "--role", "learner")
        learner = self.start("learner", *log, "--role", "learner")
        with standby.client() as client:
            wait_until(lambda: client.stats()["rounds"] == 56, "the standby has not got the others")
        self.assertEqual(self.lists_of("learner"), self.lists_of("standby"))

    def test_learners_with_different_arms_do_not_end_each_other_for_ever(self):
        log = ["--log", self.start_redis().url + "/shop", "--role", "learner"]
        arms = {"first": "learner=50,incumbent=50", "second": "learner=90,incumbent=10"}

        def begin(name):
            return self.start(name, *log, *SETTINGS, "--arms", arms[name])

        def shares(service):
            with service.client() as client:
                return [arm["share"] for arm in client.arms()["arms"]]
        first = begin("first")
        second = begin("second")
        self.assertEqual(first.process.wait(timeout=900), 1)
        first = begin("first")  # as its supervisor does
        self.assertIn("Give all learners of the prefix the same --arms", first.messages())
        self.assertEqual(shares(first), shares(second))
        self.assertIsNone(second.process.poll())
        # Other arms, named anew, are an order.
        arms["first"] = "learner=70,incumbent=30"
        first.stop()
        first = begin("first")
        self.assertEqual(second.process.wait(timeout=900), 1)
        second = begin("second")
        self.assertEqual(shares(first), shares(second))

    def test_wrong_starts_end_with_a_sentence(self):
        server = self.start_redis()
        url = server.url + "/shop"
        state = ["--state", self.folder / "a", *SETTINGS]
        self.assertIn("neither redis nor rediss", self.refused("--log", "http://127.0.0.1/shop", *state, code=2))
        self.assertIn("cannot be reached", self.refused("--log", f"redis://127.0.0.1:{free_port()}/shop", *state, "--wait-seconds", 0))
        self.assertIn("no service yet", self.refused("--log", url, "--role", "replica", "--wait-seconds", 0))
        self.assertIn("--role replica and --state", self.refused("--log", url, "--role", "replica", *state, code=2))
        self.assertIn("--role requires --log", self.refused("--role", "learner", *state, code=2))
        self.assertIn("--follow and --log", self.refused("--log", url, "--follow", "http://127.0.0.1:1", code=2))
        self.assertIn("cannot be read", self.refused("--follow", f"http://127.0.0.1:{free_port()}", "--wait-seconds", 0))
        self.assertIn("http://HOST:PORT", self.refused("--follow", "ftp://127.0.0.1", code=2))
        self.assertIn("--follow-ca requires", self.refused("--follow", "http://127.0.0.1:1", "--follow-ca", "x.pem", code=2))
        self.assertIn("TLS failed", self.refused("--log", url.replace("redis:", "rediss:"), *state, "--wait-seconds", 0))
        server.ask("config", "set", "appendonly", "no")
        self.assertIn("Set 'appendonly yes'", self.refused("--log", url, *state))
        server.ask("config", "set", "appendonly", "yes")
        self.assertFalse((self.folder / "a").exists())

        learner = self.start("a", "--log", url, *SETTINGS)
        other = ["--state", self.folder / "b", *SETTINGS[:-1]]
        self.assertIn("cutoff is 5, not 7", self.refused("--log", url, *other, 7, code=2))
        self.assertIn("window is 0, not 60", self.refused("--log", url, *other, 5, "--window", 60, code=2))
        self.assertIn("cutoff is 5, not 7", self.refused("--log", url, "--role", "replica", "--cutoff", 7, code=2))
        self.assertFalse((self.folder / "b").exists())
        users, draw = Users(6, 4, docs=6), random.Random(2)
        with learner.client() as client:
            for _ in range(30):
                client.feedback(*users.ask(client, draw), attempts=5)
            client.wait_until_learned()
        learner.stop()
        # Events that a folder has acknowledged stay with it.
        window = self.start("w", *SETTINGS, "--window", 600)
        with window.client() as client:
            impression, _ = users.ask(client, draw)
            client.events(impression, [{"rank": 0}], attempts=5)
        window.kill()
        refusal = olrank("serve", "--port", "0", "--log", server.url + "/w", "--state", self.folder / "w", "--window", 600)
        self.assertEqual(refusal.returncode, 2)
        self.assertIn("Windows are still open here (1 list)", refusal.stderr)
        # A learner whose stream was cut, and one whose last record is not that of the stream.
        server.ask("xtrim", "shop:log", "maxlen", "10")
        self.assertIn("records 1 to 20 are missing", self.refused("--log", url, "--state", self.folder / "b", *SETTINGS))
        server.ask("del", "shop:log")
        server.ask("xadd", "shop:log", "30-0", "record", ",x")
        self.assertIn("belongs to another prefix", self.refused("--log", url, "--state", self.folder / "a"))
        # A model of another version: replicas keep what they have, and say what they wait for.
        server.ask("hset", "shop:model", "snapshot", "no model")
        replica = self.start(None, "--log", url, "--role", "replica")
        with replica.client() as client, self.assertRaises(ServiceError) as refusal:
            client._json("POST", "/v1/rank", {"query": "q", "docs": users.queries[0]})
        self.assertEqual(refusal.exception.status, 503)
        self.assertIn("This replica has no model yet", str(refusal.exception))

    def certificate(self):
        """A key of this machine's address and its certificate, which signs itself."""
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=redis", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        return key, certificate

    def test_passwords_and_certificates(self):
        secret = self.folder / "password"
        secret.write_text("right\n")
        key, certificate = self.certificate()
        server = self.start_redis("--requirepass", "right",
                                  tls=["--tls-cert-file", str(certificate), "--tls-key-file", str(key), "--tls-ca-cert-file",
                                       str(certificate)])
        log = ["--log", server.url + "/shop", "--log-ca", certificate, "--log-cert", certificate, "--log-key", key]
        state = ["--state", self.folder / "a", *SETTINGS]
        wrong = self.folder / "wrong"
        wrong.write_text("wrong\n")
        self.assertIn("refuses the password", self.refused(*log, *state, "--log-password-file", wrong))
        self.assertIn("NOAUTH", self.refused(*log, *state))
        self.assertIn("TLS failed", self.refused("--log", server.url + "/shop", *state, "--log-password-file", secret,
                                                  "--wait-seconds", 0))
        self.assertIn("password does not belong", self.refused("--log", server.url.replace("//", "//:right@") + "/shop", *state,
                                                               code=2))
        self.assertIn("--log-ca", self.refused(*log[:2], "--log-ca", secret, *state))
        service = self.start("a", *log, *SETTINGS, env={**os.environ, "OLRANK_LOG_PASSWORD": "right"})
        users, draw = Users(6, 4, docs=6), random.Random(2)
        with service.client() as client:
            for _ in range(5):
                client.feedback(*users.ask(client, draw), attempts=5)
            client.wait_until_learned()
        self.assertEqual(service.stop(), 0)
        self.assertEqual(len(logged(self.folder / "a")), 5)


if __name__ == "__main__":
    unittest.main()
