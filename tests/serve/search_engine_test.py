"""A search engine with olrank behind it, played against a live service: the recorded answer with the feature log goes in, the order
comes out, clicks come back, and the learned model goes back into the engine. The records are in examples/search-engine; they have the
documented shape, and no live engine made them."""

import json
import pathlib
import unittest

from running_service import InFolder, ServiceError, ServiceTest, logged, olrank, succeed

EXAMPLES = pathlib.Path("examples/search-engine")
SET = json.loads((EXAMPLES / "featureset.json").read_text())["featureset"]["features"]
SEARCH = json.loads((EXAMPLES / "search.json").read_text())
RESPONSE = json.loads((EXAMPLES / "response.json").read_text())
NAMES = [feature["name"] for feature in SET]
HITS = RESPONSE["hits"]["hits"]
LOG = SEARCH["ext"]["ltr_log"]["log_specs"]["name"]


def features_of(hit):
    """As the plugin scores them: what matched nothing is 0."""
    values = {entry["name"]: entry.get("value", 0.0) for entry in hit["fields"]["_ltrlog"][0][LOG]}
    return [values[name] for name in NAMES]


DOCS = [{"id": hit["_id"], "features": features_of(hit)} for hit in HITS]


class SearchEngine(ServiceTest):
    def learn(self, client, rounds=40):
        """The person always clicks the umbrella, whose title does not match."""
        for _ in range(rounds):
            answer = client.rerank("rain jacket", RESPONSE, user=4711)
            client.feedback(answer["impression"], ["33"] if "33" in [doc["id"] for doc in answer["docs"]] else [])

    def exported(self, form):
        out = self.folder / f"to-{form}.json"
        succeed("export", "--state", self.state, "--to", form, "--out", out)
        return json.loads(out.read_text())

    def test_the_records_belong_together(self):
        spec = SEARCH["ext"]["ltr_log"]["log_specs"]
        sltr = SEARCH["query"]["bool"]["filter"][0]["sltr"]
        self.assertEqual(sltr["_name"], spec["named_query"])
        self.assertEqual(SEARCH["size"], len(HITS))
        for hit in HITS:
            self.assertEqual([entry["name"] for entry in hit["fields"]["_ltrlog"][0][LOG]], NAMES)
            self.assertEqual(hit["matched_queries"], [sltr["_name"]])

    def test_search_order_clicks_and_back_into_the_engine(self):
        service = self.start("--ranker", "pairrank", "--normalise", "none", "--feature-names", ",".join(NAMES))
        with service.client() as client:
            first = client.rerank("rain jacket", RESPONSE, k=2, user=4711)
            self.assertEqual(len(first["docs"]), 2)
            client.feedback(first["impression"], [])
            self.learn(client)
            client.wait_until_learned()
            best = client.rerank("rain jacket", RESPONSE, explore=False)
            self.assertEqual(best["docs"], client.rank("rain jacket", DOCS, explore=False)["docs"])
            # Names in any order, and only those that matched: as Solr's features would be sent.
            named = [{"id": doc["id"], "features": {name: v for name, v in reversed(list(zip(NAMES, doc["features"]))) if v}}
                     for doc in DOCS]
            self.assertEqual(best["docs"], client.rank("rain jacket", named, explore=False)["docs"])
            self.assertEqual(best["docs"][0]["id"], "33")
            # A search that finds nothing.
            nothing = client.rerank("rain jacket", {"hits": {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []}})
            self.assertEqual((nothing["docs"], nothing["impression"], nothing["round"]), ([], None, 41))
        self.assertEqual(service.stop(), 0)
        self.assertEqual(logged(self.state)[0]["incumbent"], [hit["_id"] for hit in HITS])  # the engine's order

        ltr = self.exported("ltr")["model"]
        weights = json.loads(ltr["model"]["definition"])
        self.assertEqual(list(weights), NAMES)
        solr = self.exported("solr")
        self.assertEqual(solr["params"]["weights"], weights)
        for doc in best["docs"]:
            values = next(features_of(hit) for hit in HITS if hit["_id"] == doc["id"])
            score = sum(weights[name] * value for name, value in zip(NAMES, values))
            # The service scores in floats.
            self.assertAlmostEqual(score, doc["score"], delta=1e-5 * sum(abs(weights[n] * v) for n, v in zip(NAMES, values)))

    def test_features_of_a_search_without_the_plugin(self):
        names = "bm25=_score,words=_source.words,fresh=matched:fresh"
        hits = [{"_id": id, "_score": score, "_source": {"words": words}, "matched_queries": matched}
                for id, score, words, matched in (("a", 9.5, 3, []), ("b", 7.25, 12, ["fresh"]), ("c", 1.5, 5, ["other"]))]
        service = self.start("--feature-names", names)
        with service.client() as client:
            shown = client.rerank("rain jacket", {"hits": {"hits": hits}})
            client.feedback(shown["impression"], ["b"])
            client.wait_until_learned()
        self.assertEqual(service.stop(), 0)
        record = logged(self.state)[0]
        self.assertEqual(record["feature_names"][:3], ["bm25", "words", "fresh"])
        # A start without names goes on with the origins, and one with others changes them alone.
        service = self.start()
        with service.client() as client:
            before = client.rerank("rain jacket", {"hits": {"hits": hits}}, explore=False)["docs"]
        self.assertEqual(service.stop(), 0)
        for hit in hits:
            hit["fields"] = {"length": [hit["_source"].pop("words")]}
        service = self.start("--feature-names", names.replace("_source.words", "fields.length?"))
        with service.client() as client:
            self.assertEqual(client.rerank("rain jacket", {"hits": {"hits": hits}}, explore=False)["docs"], before)
        self.assertEqual(service.stop(), 0)
        self.assertIn("--feature-names words=_source: '_source' is no place of a number in a hit", self.refused("--feature-names", "a,words=_source"))
        self.assertIn("feature_names is", self.refused("--feature-names", "bm25=_score,words=fields.length,new"))

    def test_names_belong_to_the_state(self):
        flags = "--ranker", "pairrank", "--normalise", "none"
        service = self.start(*flags, "--feature-names", ",".join(NAMES))
        with service.client() as client:
            self.learn(client, 5)
            model = client.model()
        self.assertEqual(service.stop(), 0)
        other = self.folder / "other.safetensors"
        other.write_bytes(model)
        for arguments, sentence in (
            (["--state", self.state, "--feature-names", "popularity,title,description"], "feature_names is "),
            (["--state", self.folder / "new", "--features", "4", "--feature-names", ",".join(NAMES)],
             "--feature-names: 3 names for the 4 features of the model."),
            (["--state", self.folder / "new", "--feature-names", "a,a"], "--feature-names: Two features have the name 'a'."),
            (["--state", self.folder / "new", "--feature-names", "2,1"], "--feature-names: '2' is a number"),
            (["--state", self.folder / "new", "--feature-names", "a,,b"], "--feature-names: The name of feature 2 is empty."),
            (["--state", self.folder / "new", "--feature-names", "a,b,"], "--feature-names: The name of feature 3 is empty."),
            (["--state", self.folder / "new", "--features", "0"], "--features must be from 1 to 1000000, not 0."),
            (["--state", self.folder / "new", "--features", "0", "--feature-names", "a"], "--features must be from 1 to 1000000, not 0."),
            (["--state", self.folder / "new", "--model", other, "--feature-names", "a,b,c"],
             "--feature-names contradicts the model, whose features are title, description and popularity."),
        ):
            InFolder.refused(self, 2, sentence, "serve", "--port", "0", *arguments)
        # A model that a service made has the names, and another service takes them from it.
        self.state = self.folder / "second"
        service = self.start("--model", other)
        with service.client() as client:
            with self.assertRaises(ServiceError) as error:
                client.rank("q", [{"id": "a", "features": {"titel": 1}}])
            self.assertEqual(error.exception.field, "docs[0].features.titel")
            self.assertEqual(len(client.rank("q", [{"id": "a", "features": {"title": 1}}])["docs"]), 1)
        self.assertEqual(service.stop(), 0)
        # Names of a model that are numbers, as of a table without names of columns, are none of a service.
        numbered = self.folder / "numbered.safetensors"
        succeed("export", other, "--to", "safetensors", "--feature-names", "0,1,2", "--out", numbered)
        self.state = self.folder / "third"
        service = self.start("--model", numbered)
        self.assertNotIn("feature_names", (self.state / "service.toml").read_text())
        self.assertEqual(service.stop(), 0)

    def test_arms_compare_it_with_the_engine(self):
        service = self.start("--ranker", "pairrank", "--feature-names", ",".join(NAMES), "--arms", "learner=0,incumbent=100")
        with service.client() as client:
            answer = client.rerank("rain jacket", RESPONSE)
            self.assertEqual((answer["arm"], [doc["id"] for doc in answer["docs"]]), ("incumbent", [hit["_id"] for hit in HITS]))
        self.assertEqual(service.stop(), 0)

    def test_a_query_wide_model_stays_out_of_the_engine(self):
        service = self.start("--feature-names", ",".join(NAMES))
        with service.client() as client:
            self.learn(client, 3)
        self.assertEqual(service.stop(), 0)
        done = olrank("export", "--state", self.state, "--to", "ltr", "--out", self.folder / "none")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("it scales features within their query, but search engines score each document alone", done.stderr)


if __name__ == "__main__":
    unittest.main()
