"""Documents that are sent once: lists by their IDs are learned as if their numbers had been sent, whatever happens in between."""

import json
import random
import socket
import threading
import unittest

from running_service import ServiceError, ServiceTest, learned_state, logged, olrank, succeed, wait_until

FEATURES = 5
QUERY_FEATURE = str(FEATURES)  # depends on the query


class Catalogue:
    """The documents of a shop, of which some change."""

    def __init__(self, docs=40):
        self.draw = random.Random(1)
        self.docs = {f"d{doc}": [round(self.draw.random(), 3) for _ in range(FEATURES - 1)] for doc in range(docs)}

    def features(self, id):
        return {str(number + 1): value for number, value in enumerate(self.docs[id])}

    def change(self, count):
        changed = self.draw.sample(sorted(self.docs), count)
        for id in changed:
            self.docs[id][0] = round(self.draw.random(), 3)
        return self.stored(changed)

    def stored(self, ids=None):
        return [{"id": id, "features": self.features(id)} for id in ids or self.docs]


class Documents(ServiceTest):
    def play(self, service, catalogue, draw, rounds, by_id):
        """Lists that depend on the learner's state alone, each learned before the next is asked for."""
        with service.client() as client:
            client.wait_until_ready()
            for _ in range(rounds):
                query = draw.randrange(6)
                match = {id: round(draw.random(), 3) for id in draw.sample(sorted(catalogue.docs), 12)}
                docs = [{"id": id, "features": {**({} if by_id else catalogue.features(id)), QUERY_FEATURE: value}}
                        for id, value in match.items()]
                ranking = client.rank(f"q{query}", docs, k=4, explore=False)
                shown = [doc["id"] for doc in ranking["docs"]]
                client.feedback(ranking["impression"], [id for id in shown if catalogue.docs[id][0] + match[id] > 1])
                wait_until(lambda: client.stats()["log_rounds"] == client._json("GET", "/v1/overview")["rounds"], "no list is published")
            return client.stats()["fingerprint"]

    def learned(self, kind, by_id):
        state = self.folder / f"{kind}-{by_id}"
        catalogue, draw = Catalogue(), random.Random(2)
        flags = ["--ranker", kind, "--features", FEATURES]
        for part in range(3):
            service = self.start(*(flags if part == 0 else []), state=state)
            changed = catalogue.stored() if part == 0 else catalogue.change(15)
            if by_id:
                with service.client() as client:
                    client.put_docs(changed)
            fingerprint = self.play(service, catalogue, draw, 6, by_id)
            service.kill()
        return state, fingerprint

    def fingerprint_of(self, state):
        return json.loads(succeed("serve", "--state", state, "--learn-only", "--json"))["fingerprint"]

    def test_lists_by_id_are_learned_as_if_sent_in_full(self):
        for kind in ("clickgp", "pairrank"):  # the second one's records lack the documents that were not shown
            with self.subTest(kind):
                sent, wanted = self.learned(kind, False)
                state, fingerprint = self.learned(kind, True)
                self.assertEqual(fingerprint, wanted)
                records = logged(state)
                self.assertFalse(any("inputs" in record for record in records))
                self.assertEqual({version for record in records for version in record["versions"]}, {1, 2, 3})
                self.assertEqual("rest" in records[0], kind == "pairrank")
                self.assertEqual(self.fingerprint_of(state), wanted)
                self.assertEqual(learned_state(state)["fingerprint"], wanted)  # by --import-log
                succeed("log", "backup", "--state", state, "--out", self.folder / f"{kind}-copy")
                (self.folder / f"{kind}-copy" / "checkpoint").unlink()
                self.assertEqual(self.fingerprint_of(self.folder / f"{kind}-copy"), wanted)
                copied = self.folder / f"{kind}.jsonl"
                succeed("log", "cut", "--log", state, "--from-round", "1", "--out", copied)
                whole = [json.loads(line) for line in copied.read_text().splitlines()]
                self.assertEqual([record["inputs"] for record in whole], [record["inputs"] for record in logged(sent)])
                if kind == "clickgp":
                    self.assertLess(*((folder / "feedback.jsonl").stat().st_size for folder in (state, sent)))
                self.assertEqual(*(succeed("export", "--state", folder, "--to", "json", "--out", self.folder / "model.json") or
                                   (self.folder / "model.json").read_bytes() for folder in (state, sent)))

    def test_a_log_without_its_documents_says_so(self):
        state, _ = self.learned("pairrank", True)
        (state / "documents.jsonl").rename(state / "elsewhere")
        self.assertEqual(olrank("log", "stats", "--log", state).returncode, 0)  # needs no inputs
        start = ["serve", "--state", state, "--learn-only"]
        for command in (start, ["log", "cut", "--log", state, "--from-round", "1", "--out", self.folder / "out"]):
            done = olrank(*command)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertRegex(done.stderr, "feedback.jsonl:1:1: The record has version 1 of document 'd[0-9]+', which .*documents.jsonl lacks")
        (state / "elsewhere").rename(state / "documents.jsonl")
        self.fingerprint_of(state)  # writes a checkpoint that covers the log
        (state / "documents.jsonl").rename(state / "elsewhere")
        self.assertIn("documents.jsonl lacks: put the file there that belongs to this log", olrank(*start).stderr)

    def test_lists_of_documents_that_are_not_stored_are_learned(self):
        # With a ranker that logs the shown documents alone, and inputs that no other document scales, one list may show no stored one.
        state = self.folder / "mixed"
        service = self.start("--ranker", "pairrank", "--features", 2, "--normalise", "none", state=state)
        with service.client() as client:
            client.put_docs([{"id": "stored", "features": [0, 0]}])
            for _ in range(40):  # one document has no pairs, so that chance alone decides which is shown
                ranking = client.rank("q", ["stored", {"id": "sent", "features": [1, 0]}], k=1)
                client.feedback(ranking["impression"], [ranking["docs"][0]["id"]])
            fingerprint = client.wait_until_learned()["fingerprint"]
        service.kill()
        self.assertEqual({"versions" in json.loads(line) for line in (state / "feedback.jsonl").read_text().splitlines()}, {True, False})
        self.assertEqual(self.fingerprint_of(state), fingerprint)

    def test_no_acknowledged_version_is_lost(self):
        versions, stop = {}, threading.Event()
        for turn in range(3):
            service = self.start(*(["--features", 2] if turn == 0 else []), "--segment", "2kB")

            def put(name, client):
                try:
                    while True:
                        content = versions.get(name, 0) + 1
                        versions[name] = client.put_docs([{"id": name, "features": [content, 0]}])[0]
                except (OSError, ServiceError):
                    pass

            threads = [threading.Thread(target=put, args=(name, service.client())) for name in "abc"]
            for thread in threads:
                thread.start()
            wait_until(lambda: all(versions.get(name, 0) > 20 * (turn + 1) for name in "abc"), "nothing is stored")
            service.kill()
            for thread in threads:
                thread.join()
        with self.start().client() as client:
            for name, version in versions.items():
                stored = client.doc(name)
                self.assertGreaterEqual(stored["version"], version)
                versions[name] = stored["version"]
            client.put_docs([{"id": "a", "features": [0, 1], "version": 10**6}])
            with self.assertRaises(ServiceError) as refusal:
                client.put_docs([{"id": "a", "features": [0, 1], "version": 10**6 - 1}])
            self.assertEqual((refusal.exception.status, refusal.exception.field), (409, "documents[0].version"))
        self.assertTrue(list(self.state.glob("documents-*")), "the documents' log was never closed")

    def test_a_request_that_is_cut_short_stores_nothing(self):
        service = self.start("--features", 2)
        with socket.create_connection(service.address) as cut:  # short of its length
            cut.sendall(b"PUT /v1/docs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
                        b'{"id":"half","features":[1,2]}')
            cut.shutdown(socket.SHUT_WR)
            self.assertIn(b"The request ends early.", cut.makefile("rb").read())
        self.assertEqual(service.stop(), 0)


if __name__ == "__main__":
    unittest.main()
