"""Features by name: imported logs in another order, a schema, and a schema that changes."""

import json
import random
import time
import unittest

from running_service import ServiceError, ServiceTest, learned_state, logged, succeed, wait_until

RANKER = ["--ranker", "pairrank"]
PRICES = "[[feature]]\nname = \"price\"\nlog1p = true\n[[feature]]\nname = \"age\"\n[[feature]]\nname = \"stock\"\n"


class Names(ServiceTest):
    def setUp(self):
        super().setUp()
        draws = random.Random(3)
        self.docs = {f"d{doc}": {name: round(draws.random(), 3) for name in ("price", "age", "stock")} for doc in range(8)}
        lists = [draws.sample(sorted(self.docs), 4) for _ in range(30)]
        self.lists = self.folder / "lists"
        self.lists.write_text("".join(json.dumps({"query": "q", "docs": docs, "clicks": [doc for doc in docs if self.docs[doc]["price"] > 0.5]})
                                      + "\n" for docs in lists))

    def recorded(self, *names, model=()):
        table, log = self.folder / "table.csv", self.folder / f"{'-'.join(names)}.jsonl"
        table.write_text(f"doc,{','.join(names)}\n" + "".join(f"{doc},{','.join(str(row[name]) for name in names)}\n"
                                                               for doc, row in self.docs.items()))
        succeed("log", "import", "--format", "jsonl", "--from", self.lists, "--features", table, "--out", log, "--force", *model)
        return log

    def learned(self, log, names="price,age,stock", state=None):
        state = state or self.folder / f"{log.stem}-{names}"
        return json.loads(succeed("serve", "--state", state, *RANKER, "--feature-names", names, "--import-log", log, "--learn-only", "--json"))

    def test_an_import_takes_features_by_name(self):
        log = self.recorded("price", "age", "stock")
        expected = self.learned(log)
        other = self.recorded("stock", "price", "age")
        self.assertEqual(json.loads(other.read_text().splitlines()[0])["feature_names"], ["stock", "price", "age"])
        self.assertEqual(self.learned(other), expected)
        # Numbers of the log are those of its own names, so that other positions are other features.
        self.assertNotEqual(self.learned(other, "stock,price,age")["fingerprint"], expected["fingerprint"])
        model = self.folder / "model.safetensors"
        succeed("export", "--state", self.folder / f"{log.stem}-price,age,stock", "--to", "safetensors", "--out", model)
        mapped = self.recorded("age", "stock", "price", model=("--model", model))
        self.assertEqual(mapped.read_text(), log.read_text())

    def test_an_import_lacks_and_drops_features(self):
        log = self.recorded("price", "age", "stock")
        state = self.folder / "wider"
        self.learned(log, "price,colour,age,stock", state)
        first = logged(state)[0]
        self.assertEqual(first["feature_names"], ["price", "colour", "age", "stock"])
        self.assertEqual({row[1] for row in first["inputs"]}, {0})
        self.assertEqual(self.refused(*RANKER, "--feature-names", "price,stock", "--import-log", log, code=1),
                         f"olrank: {log}:1:1: The list has the feature 'age', which the model lacks: leave it out of an import with "
                         "'-NAME' in --feature-names.\n")
        self.assertEqual(self.learned(log, "price,stock,-age"), self.learned(self.recorded("price", "stock"), "price,stock"))

    def test_a_log_of_an_earlier_version_has_the_names_of_its_service(self):
        log = self.recorded("price", "age", "stock")
        expected = self.learned(log, "stock,age,price")
        old = self.folder / "old"
        self.learned(log, state=old)
        unnamed = [line.replace('"feature_names":["price","age","stock"],', "").split(',"check"')[0] + "}\n"
                   for line in (old / "feedback.jsonl").read_text().splitlines()]
        self.assertNotIn("feature_names", "".join(unnamed))
        (old / "feedback.jsonl").write_text("".join(unnamed))
        self.assertEqual(self.learned(old / "feedback.jsonl", "stock,age,price"), expected)
        # Elsewhere, positions decide, unless other lines have names.
        copy = self.folder / "copy.jsonl"
        copy.write_text("".join(unnamed))
        self.assertNotEqual(self.learned(copy, "stock,age,price")["fingerprint"], expected["fingerprint"])
        copy.write_text("".join(unnamed) + log.read_text())
        self.assertIn(f"{copy}:31:1: This line names its features and an earlier one does not",
                      self.refused(*RANKER, "--feature-names", "stock,age,price", "--import-log", copy, code=1))

    def test_models_of_ope_and_arms_take_features_by_name(self):
        log = self.recorded("price", "age", "stock")
        self.learned(log)
        model = self.folder / "model.safetensors"
        succeed("export", "--state", self.folder / f"{log.stem}-price,age,stock", "--to", "safetensors", "--out", model)
        self.lists.write_text("".join(json.dumps({**json.loads(line), "propensity": [0.25, 0.5, 0.5, 1], "unshown": []}) + "\n"
                                      for line in self.lists.read_text().splitlines()))
        told = [json.loads(succeed("ope", "--log", self.recorded(*names), "--model", model, "--policy", "epsilon=0.5", "--at", 3, "--json"))
                for names in (("price", "age", "stock"), ("stock", "price", "age"))]
        for one in told:
            one.pop("log", None)
        self.assertEqual(*told)
        lists = []
        for names in ("price,age,stock", "stock,price,age"):
            service = self.start(*RANKER, "--feature-names", names, "--arms", "today=50,learner=50", "--arm-model", f"today={model}",
                                 state=self.folder / f"arms-{names}")
            docs = [{"id": doc, "features": row} for doc, row in self.docs.items()]
            with service.client() as client:
                shown = [client.rank("q", docs, user=f"u{user}") for user in range(8)]
            lists.append([doc["id"] for one in shown if one["arm"] == "today" for doc in one["docs"]][:len(docs)])
            self.assertEqual(service.stop(), 0)
        self.assertEqual(len(lists[0]), len(self.docs))
        self.assertEqual(*lists)
        self.assertIn("The model of arm 'today' has the feature 'age', which the service lacks",
                      self.refused(*RANKER, "--feature-names", "price,stock,new", "--arms", "today=50,learner=50", "--arm-model",
                                   f"today={model}"))


class SchemaChange(ServiceTest):
    def schema(self, text):
        path = self.folder / "schema.toml"
        path.write_text(text)
        return path

    def play_shop(self, service, rounds, seed, features):
        draws = random.Random(seed)
        with service.client() as client:
            for _ in range(rounds):
                docs = [{"id": f"d{doc}", "features": features(draws)} for doc in range(6)]
                ranking = client.rank(f"q{draws.randrange(5)}", docs, k=4)
                price = {doc["id"]: next(iter(doc["features"].values())) for doc in docs}
                client.feedback(ranking["impression"], [doc["id"] for doc in ranking["docs"] if price[doc["id"]] > 5])
            return client.wait_until_learned()

    def test_a_changed_schema_learns_the_log_again(self):
        for ranker in ("pairrank", "clickgp"):
            with self.subTest(ranker=ranker):
                self.state = self.folder / ranker
                service = self.start("--ranker", ranker, "--schema", self.schema(PRICES))
                self.play_shop(service, 25, 1, lambda draws: {"price": 10 * draws.random(), "age": draws.random(), "stock": draws.randrange(3)})
                with self.assertRaises(ServiceError) as refused, service.client() as client:
                    client.rank("q", [{"id": 1, "features": {"prize": 1}}])
                self.assertIn("Did you mean 'price'?", str(refused.exception))
                self.assertEqual(service.stop(), 0)
                before = {path.name: path.read_bytes() for path in self.state.iterdir()}
                first = logged(self.state)[0]
                self.assertEqual(first["feature_names"], ["price", "age", "stock"])

                # A schema that does not say enough stops the start, and changes nothing.
                lacking = self.schema("[[feature]]\nname = \"cost\"\nlog1p = true\nwas = [\"price\"]\n[[feature]]\nname = \"age\"\n")
                self.assertIn("The log has the feature 'stock', which the schema lacks", self.refused("--schema", lacking))
                other = self.schema(PRICES.replace("log1p = true\n", ""))
                self.assertIn("'price' is computed in another way than in the log", self.refused("--schema", other))
                self.assertEqual({path.name: path.read_bytes() for path in self.state.iterdir()}, before)

                changed = self.schema("drop = [\"stock\"]\n[[feature]]\nname = \"colour\"\nkind = \"category\"\nvalues = [\"red\", \"blue\"]\n"
                                      "[[feature]]\nname = \"cost\"\nlog1p = true\nwas = [\"price\"]\n[[feature]]\nname = \"age\"\n")
                # A log that is lost is not taken for an empty one.
                (self.state / "feedback.jsonl").rename(self.folder / "kept")
                self.assertIn("the log was cut, or is another one", self.refused("--schema", changed, code=1))
                (self.folder / "kept").rename(self.state / "feedback.jsonl")
                copy = self.folder / f"copy-{ranker}"
                succeed("log", "backup", "--state", self.state, "--out", copy)
                service = self.start("--schema", changed)
                features = (lambda draws: {"cost": 10 * draws.random(), "age": draws.random(), "colour": draws.choice(["red", "blue", "green"])})
                self.play_shop(service, 25, 2, features)
                with service.client() as client:
                    fingerprint = client.stats()["fingerprint"]
                self.assertEqual(service.stop(), 0)
                self.assertIn("The schema adds colour=red and colour=blue, renames price to cost, drops stock. The 25 rounds of the log are "
                              "learned again.", service.messages())
                self.assertFalse((self.state / "checkpoint.set-aside").exists())
                names = [record["feature_names"] for record in logged(self.state)]
                self.assertEqual(names, 25 * [["price", "age", "stock"]] + 25 * [["colour=red", "colour=blue", "cost", "age"]])
                self.assertNotEqual(logged(self.state)[0]["schema"], logged(self.state)[-1]["schema"])
                # A fresh service learns the whole log under the new schema to the same bits, and so does a restart.
                fresh = json.loads(succeed("serve", "--state", self.folder / f"fresh-{ranker}", "--ranker", ranker, "--schema", changed,
                                           "--import-log", self.state / "feedback.jsonl", "--learn-only", "--json"))
                self.assertEqual((fresh["rounds"], fresh["fingerprint"]), (50, fingerprint))
                succeed("export", "--state", self.state, "--to", "safetensors" if ranker == "pairrank" else "snapshot", "--out", self.folder / "model")
                succeed("ope", "--log", self.state, "--model", self.folder / "model", "--replicates", "20")
                (self.state / "checkpoint").unlink()
                # A backup takes no checkpoint of the schema before.
                succeed("log", "backup", "--state", self.state, "--out", copy)
                copied = json.loads(succeed("serve", "--state", copy, "--learn-only", "--json"))
                self.assertEqual(copied["fingerprint"], fingerprint)
                again = json.loads(succeed("serve", "--state", self.state, "--learn-only", "--json"))
                self.assertEqual(again["fingerprint"], fingerprint)
                self.assertEqual(learned_state(self.state)["fingerprint"], fingerprint)

    def test_a_counter_that_is_added_counts_the_lists_so_far(self):
        service = self.start(*RANKER, "--schema", self.schema(PRICES), "--normalise", "none")
        self.play_shop(service, 20, 1, lambda draws: {"price": 10 * draws.random(), "age": 0, "stock": 0})
        self.assertEqual(service.stop(), 0)
        service = self.start("--schema", self.schema(PRICES + "[[feature]]\nname = \"seen\"\nkind = \"counter\"\nof = \"views\"\n"))
        with service.client() as client:
            client.wait_until_learned()
            docs = [{"id": f"d{doc}", "features": {"price": 1}} for doc in range(6)]
            client.feedback(client.rank("q1", docs, k=6)["impression"], [])
        self.assertEqual(service.stop(), 0)
        records = logged(self.state)
        for doc, inputs in zip(records[-1]["shown"], records[-1]["inputs"]):
            self.assertEqual(inputs[3], sum(doc in record["shown"] for record in records[:20]))

    CHANGED = ("drop = [\"stock\"]\n[[feature]]\nname = \"colour\"\nkind = \"category\"\nvalues = [\"red\", \"blue\"]\n[[feature]]\n"
               "name = \"cost\"\nlog1p = true\nwas = [\"price\"]\n[[feature]]\nname = \"age\"\n"
               "[[feature]]\nname = \"seen\"\nkind = \"counter\"\nof = \"views\"\n")

    def play_ids(self, client, rounds, draws, form):
        """Lists of stored documents and of one in the form of a schema."""
        for _ in range(rounds):
            shown = client.rank(f"q{draws.randrange(5)}", [{"id": f"d{doc}"} for doc in range(6)] + [{"id": "new", "features": form(draws)}], k=4)
            client.feedback(shown["impression"], ids=[doc["id"] for doc in shown["docs"] if draws.random() < 0.4])

    OLD = staticmethod(lambda draws: {"price": 10 * draws.random(), "age": draws.random(), "stock": draws.randrange(3)})
    NEW = staticmethod(lambda draws: {"cost": 10 * draws.random(), "age": draws.random(), "colour": "blue"})

    def changing(self, ranker):
        """A service with 40 lists, and a schema for it that is another one."""
        service = self.start("--ranker", ranker, "--schema", self.schema(PRICES))
        draws = random.Random(5)
        with service.client() as client:
            client.put_docs([{"id": f"d{doc}", "features": self.OLD(draws)} for doc in range(6)])
            self.play_ids(client, 40, draws, self.OLD)
        return service, draws

    def learned_fresh(self, ranker):
        fresh = self.folder / f"fresh-{ranker}-{len(list(self.folder.iterdir()))}"
        return json.loads(succeed("serve", "--state", fresh, "--ranker", ranker, "--schema", self.schema(self.CHANGED), "--import-log",
                                  self.state / "feedback.jsonl", "--learn-only", "--json"))

    def test_a_running_service_changes_its_schema(self):
        for ranker in ("pairrank", "clickgp"):
            with self.subTest(ranker=ranker):
                self.state = self.folder / f"running-{ranker}"
                service, draws = self.changing(ranker)
                with service.client() as client:
                    before = client.schema()
                    self.assertEqual((before["columns"], before["next"], before["failure"]), (["price", "age", "stock"], None, None))
                    says = "The schema adds colour=red, colour=blue and seen, renames price to cost, drops stock."
                    self.assertEqual(client.put_schema(self.CHANGED, dry_run=True), {"dry_run": True, "change": says, "rounds": 40})
                    self.assertEqual(client.put_schema(PRICES), {"dry_run": False, "change": "The schema keeps all.", "rounds": 0})
                    for wrong, field, sentence in (
                            ("[[feature]]\nname = \"price\"\nlog1p = true\n", "schema", "The log has the feature 'age', which the schema lacks"),
                            (PRICES.replace("log1p = true\n", ""), "schema", "'price' is computed in another way"),
                            (PRICES + "half_life = 0\n", "schema", "Feature 'stock' is no counter"), ("7", "schema", "schema:1:")):
                        with self.assertRaises(ServiceError) as refused:
                            client.put_schema(wrong)
                        self.assertEqual((refused.exception.status, refused.exception.field), (422, field))
                        self.assertIn(sentence, refused.exception.message)
                    self.assertEqual(client.schema(), before)
                    old = client.doc("d1")
                    self.assertEqual(client.put_schema(self.CHANGED)["change"], says)
                    during = client.schema()
                    client.checkpoint()  # of the learner before, perhaps
                    self.play_ids(client, 3, draws, self.NEW)
                    self.play_ids(client, 3, draws, self.OLD)
                    wait_until(lambda: client.schema()["next"] is None, "the schema takes over")
                    if during["next"] is not None:
                        self.assertEqual(during["next"]["change"], says)
                    self.assertEqual(client.schema()["columns"], ["colour=red", "colour=blue", "cost", "age", "seen"])
                    changed = client.doc("d1")
                    self.assertEqual(changed["version"], old["version"])
                    # The numbers of versions stay the caller's.
                    self.assertEqual(client.put_docs([{**changed, "version": old["version"] + 1, "features": {"cost": 3}}]), [old["version"] + 1])
                    self.assertEqual(client.put_docs([{**changed, "version": old["version"] + 2}]), [old["version"] + 2])
                    self.assertEqual(changed["features"], {"cost": old["features"]["price"], "age": old["features"]["age"]})
                    self.play_ids(client, 10, draws, self.NEW)
                    self.play_ids(client, 10, draws, self.OLD)  # a client that does not know yet
                    with self.assertRaises(ServiceError):
                        client.rank("q", [{"id": 1, "features": {"weight": 1}}])
                    stats = client.wait_until_learned()
                    self.assertEqual((stats["rounds"], stats["features"]), (66, 5))
                    effects = {one["name"] for one in json.loads(client._call("GET", "/v1/features"))["features"]}
                    self.assertTrue({"cost"} <= effects <= set(client.schema()["columns"]), effects)
                    client.model()
                self.assertEqual(service.stop(), 0)
                self.assertFalse((self.state / "schemas.json").exists())
                self.assertEqual(self.learned_fresh(ranker)["fingerprint"], stats["fingerprint"])
                self.assertEqual(json.loads(succeed("serve", "--state", self.state, "--learn-only", "--json"))["fingerprint"], stats["fingerprint"])
                (self.state / "checkpoint").unlink()
                self.assertEqual(json.loads(succeed("serve", "--state", self.state, "--learn-only", "--json"))["fingerprint"], stats["fingerprint"])

    def test_a_kill_leaves_one_of_the_schemas(self):
        for number in range(6):
            self.state = self.folder / f"killed-{number}"
            service, draws = self.changing("pairrank")
            with service.client() as client:
                client.put_schema(self.CHANGED)
                time.sleep(0.01 * number)
            service.kill()
            service = self.start()
            with service.client() as client:
                wait_until(lambda: client.schema()["next"] is None, "the schema takes over")
                self.assertIn("cost", client.schema()["columns"])
                self.play_ids(client, 5, draws, self.NEW)
                stats = client.wait_until_learned()
            self.assertEqual((stats["rounds"], stats["documents"]), (45, 6))
            self.assertEqual(service.stop(), 0)
            self.assertEqual(self.learned_fresh("pairrank")["fingerprint"], stats["fingerprint"])


if __name__ == "__main__":
    unittest.main()
