"""Several services in one process: each has its own ranker, arms, log and checkpoint, and none sees another's."""

import json
import random
import re
import socket
import unittest
import urllib.request

from running_service import RunningService, ServiceError, ServiceTest, Users, learned_state, logged, wait_until

TABLES = """
[shop-de]
features = 6

[shop-fr]
ranker = "pairrank"
feature-names = ["a", "b", "c", "d", "e", "f"]
arms = "learner=50,incumbent=50"
cutoff = 3

[shop-it]
ranker = "pairrank"
lambda = 2.5
features = 6
window = 3600
events = "click=1,cart=3"

[shop-es]
features = 6
"""
NAMES = re.findall(r"^\[(.*)\]$", TABLES, re.MULTILINE)


class Surfaces(ServiceTest):
    def start_with(self, tables, *flags):
        file = self.folder / "surfaces.toml"
        file.write_text(tables)
        return self.start("--surfaces", file, *flags)

    def play(self, service, name, rounds, seed=1):
        """Lists with feedback, on every surface the documents of one user: those acknowledged."""
        users, draw, acknowledged = Users(2, 6), random.Random(seed), set()
        with service.client(surface=name) as client:
            for _ in range(rounds):
                query = draw.randrange(len(users.queries))
                docs = users.queries[query]
                ranking = client.rank(f"q{query}", docs, incumbent=[doc["id"] for doc in docs])
                client.feedback(ranking["impression"], [0])
                acknowledged.add(ranking["impression"])
        return acknowledged

    def test_each_learns_for_itself(self):
        service = self.start_with(TABLES)
        acknowledged = {name: self.play(service, name, 5 + 5 * number, number) for number, name in enumerate(NAMES) if name != "shop-it"}
        with service.client(surface="shop-it") as client:
            client.events(client.rank("q", Users(2, 6).queries[0])["impression"], [{"type": "cart", "rank": 1}])
        prints = {}
        for name in acknowledged:
            with service.client(surface=name) as client:
                prints[name] = client.wait_until_learned()["fingerprint"]
                self.assertEqual(client.stats()["rounds"], len(acknowledged[name]))
        with service.client() as client:
            self.assertTrue(client.is_ready())
            metrics = client.metrics()
            for path in ("/v1/rank", "/v1/stats", "/surface/shop-uk/v1/stats", "/surface/shop-de", "/surface//v1/stats"):
                with self.assertRaises(ServiceError) as refusal:
                    client._json("POST" if path.endswith("rank") else "GET", path, {} if path.endswith("rank") else None)
                self.assertEqual((refusal.exception.status, str(refusal.exception)), (404, (
                    "404: Name a surface in the path, as in /surface/shop-es/v1/rank. The surfaces are shop-de, shop-fr, shop-it and shop-es."
                    if path != "/surface/shop-de" else "404: Unknown path.")), path)
            with self.assertRaises(ServiceError) as refusal, service.client(surface="shop-fr") as french:
                french.rank("q", [{"id": "a", "features": {"g": 1}}])
            self.assertEqual(refusal.exception.field, "docs[0].features.g")
        self.assertIn('\nolrank_rounds_total{surface="shop-fr"} 10\n', metrics)
        self.assertIn('\nolrank_clicks_total{surface="shop-de",rank="1"} 5\n', metrics)
        self.assertRegex(metrics, r'\nolrank_arm_\w+\{surface="shop-fr",')
        for heading in set(re.findall("# TYPE .*", metrics)):
            self.assertEqual(metrics.count(heading + "\n"), 1, heading)
        self.assertEqual(len(re.findall(r"\nprocess_resident_memory_bytes ", metrics)), 1)
        self.assertLess(float(re.search(r"\nprocess_resident_memory_bytes (\S+)", metrics)[1]), 200e6)
        with urllib.request.urlopen(service.url) as page:
            self.assertEqual(re.findall('href="([^"]*)"', page.read().decode()), [f"surface/{name}/" for name in NAMES])
        with urllib.request.urlopen(service.url + "/surface/shop-fr/") as page:
            self.assertIn("v1/overview", page.read().decode())

        service.kill()
        service = self.start_with(TABLES)
        acknowledged["shop-de"] |= self.play(service, "shop-de", 3, seed=9)
        with service.client(surface="shop-de") as client:
            prints["shop-de"] = client.wait_until_learned()["fingerprint"]
            snapshot = self.folder / "shop.snapshot"
            snapshot.write_bytes(client._call("GET", "/v1/snapshot"))
        self.assertEqual(service.stop(), 0)
        for name, lists in acknowledged.items():
            self.assertEqual({line["impression"] for line in logged(self.state / name)}, lists)
            alone = learned_state(self.state / name)
            self.assertEqual((alone["rounds"], alone["fingerprint"]), (len(lists), prints[name]), name)
        # A new surface goes on from another's snapshot, and the window of shop-it is still open.
        service = self.start_with(TABLES + f'[shop-pt]\nmodel = "{snapshot}"\n')
        docs = Users(2, 6).queries[7]
        orders = []
        for name in ("shop-de", "shop-pt"):
            with service.client(surface=name) as client:
                orders.append(client.rank("q7", docs, explore=False)["docs"])
        self.assertEqual(*orders)
        with service.client(surface="shop-it") as client:
            self.assertEqual(client.stats()["open_impressions"], 1)
        self.assertEqual(service.stop(), 0)

    def raw(self, service, request):
        """The status of each answer on one connection."""
        with socket.create_connection(service.address) as connection:
            connection.sendall(request.encode())
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return re.findall(rb"HTTP/1.1 (\d+)", answer)

    def test_places_of_surfaces(self):
        accesses = self.folder / "accesses.jsonl"
        service = self.start_with("[a]\nfeatures = 2\n[b]\nfeatures = 2\n", "--access-log", accesses)
        head = " HTTP/1.1\r\nHost: localhost\r\n\r\n"
        self.assertEqual(self.raw(service, "GET http://localhost/surface/a/v1/stats" + head), [b"200"])
        self.assertEqual(self.raw(service, "GET /surface/a/healthz?x=1" + head + "GET /surface/b/nothing" + head), [b"200", b"404"])
        self.assertEqual(self.raw(service, "GET /surface/a/healthz" + head + "GARBAGE\r\n\r\n"), [b"200", b"400"])
        with service.client() as client:
            metrics = client.metrics()
        self.assertNotIn('surface="a",route="other"', metrics)
        self.assertIn('olrank_requests_total{surface="b",route="other",status="404"} 1\n', metrics)
        follower = RunningService(None, "--follow", service.url + "/surface/b")
        self.services.append(follower)
        with follower.client() as client:
            wait_until(client.is_ready, "the follower has no model")
        self.assertEqual(follower.stop(), 0)
        self.assertEqual(service.stop(), 0)
        paths = [json.loads(line)["path"] for line in accesses.read_text().splitlines()]
        self.assertEqual(paths[:5], ["/surface/a/v1/stats", "/surface/a/healthz", "other", "/surface/a/healthz", "other"])


if __name__ == "__main__":
    unittest.main()
