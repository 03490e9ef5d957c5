"""docs/openapi.json says what requests and answers are: answers of running services fit it, and so does a client made from it."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

from running_service import ServiceTest, Users, wait_until

try:
    import jsonschema
except ImportError:
    print("Python's jsonschema is missing")
    sys.exit(77)

DOCUMENT = json.loads(pathlib.Path("docs/openapi.json").read_text())
RANKER = "--ranker", "pairrank", "--features", "3"


def validate(value, schema):
    jsonschema.validate(value, {**schema, "components": DOCUMENT["components"]}, cls=jsonschema.Draft202012Validator)


def operation(method, path):
    return DOCUMENT["paths"][path][method.lower()]


class OpenApi(ServiceTest):
    def ask(self, client, method, path, request=None):
        """The answer, which fits the document as the request does."""
        described = operation(method, path)
        if request is not None:
            validate(request, described["requestBody"]["content"]["application/json"]["schema"])
        answer = client._json(method, path, request)
        validate(answer, described["responses"]["200"]["content"]["application/json"]["schema"])
        return answer

    def refuse(self, service, path, request):
        """The error, which fits the document."""
        asked = urllib.request.Request(service.url + path, json.dumps(request).encode(), {"Content-Type": "application/json"})
        with self.assertRaises(urllib.error.HTTPError) as refusal, urllib.request.urlopen(asked):
            pass
        answer = json.loads(refusal.exception.read())
        validate(answer, operation("POST", path)["responses"]["default"]["content"]["application/json"]["schema"])
        return answer["error"]

    def test_it_has_every_path_of_the_service(self):
        source = pathlib.Path("serve/routes.cpp").read_text()
        constants = dict(re.findall(r'string_view (k\w+Path) = "([^"]+)"', source))
        routes = re.findall(r'\{"(GET|POST|PUT|DELETE)", ("[^"]+"|k\w+Path)', source)
        self.assertGreater(len(routes), 12)
        self.assertEqual({(method, constants.get(path, path.strip('"'))) for method, path in routes},
                         {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods})

    def test_answers_fit(self):
        users = Users(1, 3, docs=6)
        for name, flags in {"plain": ("--features", "3"), "arms": (*RANKER, "--arms", "learner=50,incumbent=50"),
                            "window": (*RANKER, "--window", "1", "--events", "click=1,cart=3"),
                            "groups": (*RANKER, "--groups", "beta=1")}.items():
            self.state = self.folder / name
            service = self.start(*flags)
            with service.client() as client, self.subTest(name):
                for number, docs in enumerate(users.queries[:8]):
                    docs = [{**doc, "group": "AB"[row % 2]} if name == "groups" else doc for row, doc in enumerate(docs)]
                    ranking = self.ask(client, "POST", "/v1/rank", {
                        "query": number, "docs": docs, "k": 3, "user": f"u{number}", "certainty": True, "explore": number % 2 == 0,
                        "incumbent": [doc["id"] for doc in docs]})
                    clicks = {"events": [{"type": "cart", "rank": 1}]} if name == "window" else \
                        [{"clicks": [0]}, {"ids": []}, {"ranks": [1]}][number % 3]
                    self.ask(client, "POST", "/v1/feedback", {"impression": ranking["impression"], **clicks})
                if name == "window":
                    time.sleep(1.2)
                client.wait_until_learned()
                for path in ("/v1/stats", "/v1/overview", "/readyz", "/healthz", *(["/v1/arms"] if name == "arms" else [])):
                    self.ask(client, "GET", path)
                self.ask(client, "POST", "/v1/checkpoint")
                if name != "plain":
                    continue
                self.ask(client, "PUT", "/v1/docs", {"id": 1, "version": 4, "features": [1, 2, 3]})
                self.ask(client, "PUT", "/v1/docs", {"id": "a", "features": {"2": 0.5}})
                self.ask(client, "POST", "/v1/rank", {"query": "q", "docs": [{"id": 1}, {"id": "x"}], "allow_unknown": True})
                validate(client.doc("a"), DOCUMENT["components"]["schemas"]["StoredDocument"])
                self.ask(client, "DELETE", "/v1/docs", {"ids": ["a"]})
                validate(client._json("DELETE", "/v1/docs/1"), DOCUMENT["components"]["schemas"]["Deleted"])
                # Features by name, and a hit of a search engine.
                self.ask(client, "POST", "/v1/rank", {"query": "q", "docs": [{"id": 1, "features": {"2": 0.5}}], "allow_unknown": True})
                log = [{"name": name, "value": 1} for name in "abc"]
                hits = [{"_id": "a", "fields": {"_ltrlog": [{"log": log}]}}]
                self.ask(client, "POST", "/v1/rerank", {"query": "q", "response": {"hits": {"hits": hits}}})
                self.ask(client, "POST", "/v1/rerank", {"query": "q", "response": {"hits": {"hits": []}}})
                # The service refuses what the document forbids.
                for path, request in (("/v1/rank", {"query": "q", "docs": []}),
                                      ("/v1/rank", {"query": 1.5, "docs": [{"id": "a", "features": []}]}),
                                      ("/v1/rank", {"query": "q", "docs": [{"features": [1, 2, 3]}]}), ("/v1/feedback", {"clicks": []}),
                                      ("/v1/rank", {"query": "q", "docs": [{"id": "a", "features": [1, 2, 3], "more": 1}]})):
                    with self.assertRaises(jsonschema.ValidationError):
                        validate(request, operation("POST", path)["requestBody"]["content"]["application/json"]["schema"])
                    self.refuse(service, path, request)
                first = self.ask(client, "POST", "/v1/rank", {"query": "q", "docs": users.queries[0]})["impression"]
                self.ask(client, "POST", "/v1/feedback", {"impression": first, "clicks": [0]})
                self.assertEqual(self.refuse(service, "/v1/feedback", {"impression": first, "clicks": []})["code"],
                                 "other_clicks_accepted")
                self.ask(client, "GET", "/v1/schema")
                names = "".join(f"[[feature]]\nname = \"{name}\"\n" for name in "abc")
                for dry_run in (True, False):
                    validate(client.put_schema(names, dry_run), DOCUMENT["components"]["schemas"]["SchemaChange"])
                wait_until(lambda: self.ask(client, "GET", "/v1/schema")["next"] is None, "the schema takes over")
                self.assertEqual(client.schema()["columns"], ["a", "b", "c"])

    @unittest.skipUnless(all(map(shutil.which, ("openapi-generator-cli", "esbuild", "node"))),
                         "openapi-generator-cli, esbuild or node is not installed")
    def test_a_client_in_another_language(self):
        example = pathlib.Path("examples/typescript/client.ts")
        (self.folder / "examples/typescript").mkdir(parents=True)
        shutil.copy(example, self.folder / example)
        generated, program = self.folder / "build/typescript", self.folder / "client.mjs"
        for command in (["openapi-generator-cli", "generate", "-i", "docs/openapi.json", "-g", "typescript-fetch", "-o", generated],
                        ["esbuild", self.folder / example, "--bundle", "--platform=node", "--format=esm", f"--outfile={program}"]):
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        service = self.start(*RANKER)
        done = subprocess.run(["node", program, service.url], capture_output=True, text=True)
        self.assertEqual(done.stdout, "2 documents shown, round 1\ndocs[0].features: The document has 0 features, but the model expects 3.\n",
                         done.stderr)


if __name__ == "__main__":
    unittest.main()
