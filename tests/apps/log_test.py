"""`olrank log`: lists in three formats become one log, which a service learns, olrank replays and `olrank ope` reads,
and a log is read while its service writes it. commands/service.test goes back to a round and forward again."""

import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from command_line import InFolder, succeed  # noqa: E402
from running_service import ServiceTest  # noqa: E402

FEATURES = 3


class Import(InFolder):
    def write(self, name, text):
        path = self.folder / name
        path.write_text(text if isinstance(text, str) else "".join(json.dumps(line) + "\n" for line in text))
        return path

    def setUp(self):
        super().setUp()
        draws = random.Random(5)
        self.features = {(f"q{query}", f"d{query}-{doc}"): [round(draws.random(), 3) for _ in range(FEATURES)]
                         for query in range(6) for doc in range(5)}
        self.lists = []
        for number in range(40):
            query = f"q{draws.randrange(6)}"
            docs = draws.sample([doc for of, doc in self.features if of == query], 4)
            clicks = [doc for doc in docs if self.features[query, doc][0] > 0.6]
            self.lists.append({"impression": f"i{number}", "query": query, "docs": docs, "clicks": clicks, "time": 1764158400000 + number})
        self.table = self.write("features.csv", "query,doc,f1,f2,f3\n" + "".join(
            f"{query},{doc},{','.join(map(str, values))}\n" for (query, doc), values in self.features.items()))
        self.log = self.folder / "recorded.jsonl"

    def imported(self, name, *arguments):
        out = self.folder / f"{name}.jsonl"
        told = json.loads(succeed("log", "import", "--format", name, "--out", out, "--json", "--features", self.table, "--force", *arguments))
        self.assertEqual((told["lists"], told["documents"]), (40, 160))
        self.assertEqual(told["clicks"], sum(len(one["clicks"]) for one in self.lists))
        return out

    def test_three_formats_are_one_log_that_a_service_learns(self):
        lines = self.imported("jsonl", "--from", self.write("lists", self.lists))
        rows = [f"{one['impression']},{one['query']},{doc},{rank},{int(doc in one['clicks'])},{one['time']}\n"
                for one in self.lists for rank, doc in reversed(list(enumerate(one["docs"], 1)))]
        csv = self.imported("csv", "--from", self.write("rows", "session,query,sku,rank,clicked,time\n" + "".join(rows)),
                            "--columns", "list=session,doc=sku")
        queries = self.write("queries", [{"_index": "ubi_queries", "_source": {
            "query_id": one["impression"], "user_query": one["query"], "timestamp": one["time"], "query_response_hit_ids": one["docs"]}}
            for one in self.lists])
        events = self.write("events", [{"query_id": one["impression"], "action_name": action, "timestamp": "2025-11-26T12:00:00Z",
                                        "event_attributes": {"object": {"object_id": doc, "object_id_field": "sku"}}}
                                       for one in self.lists for action, docs in (("view", one["docs"]), ("select", one["clicks"])) for doc in docs])
        ubi = self.imported("ubi", "--from", queries, "--events", events, "--action", "select")
        self.assertEqual(csv.read_text(), lines.read_text())
        self.assertEqual(ubi.read_text(), lines.read_text())

        letor = self.write("letor", "".join(
            " ".join([str(int(doc in one["clicks"])), f"qid:{one['impression']}", *(f"{n}:{v}" for n, v in enumerate(self.features[one["query"], doc], 1)),
                      "#docid =", doc]) + "\n" for one in self.lists for doc in one["docs"]))
        out = self.folder / "letor.jsonl"
        succeed("log", "import", "--format", "letor", "--from", letor, "--out", out)
        for mine, other in zip(out.read_text().splitlines(), lines.read_text().splitlines(), strict=True):
            mine, other = json.loads(mine), json.loads(other)
            for key in ("round", "shown", "clicks", "inputs"):
                self.assertEqual(mine[key], other[key])
            self.assertEqual(mine["qid"], other["impression"])
        unnamed = self.write("unnamed", "1 qid:a 1:0.5\n0 qid:a 1:0.7\n0 qid:b 1:0.5\n")
        succeed("log", "import", "--format", "letor", "--from", unnamed, "--out", out, "--force")
        shown = [json.loads(line)["shown"] for line in out.read_text().splitlines()]
        self.assertEqual(shown[0][0], shown[1][0])
        self.assertNotEqual(shown[0][1], shown[1][0])

        record = json.loads(lines.read_text().splitlines()[0])
        first = self.lists[0]
        self.assertEqual((record["round"], record["impression"], record["qid"], record["shown"]), (1, "i0", first["query"], first["docs"]))
        raw = [self.features[first["query"], doc] for doc in first["docs"]]
        for column in range(FEATURES):  # as a service scales them
            values = [row[column] for row in raw]
            for doc, value in enumerate(values):
                self.assertAlmostEqual(record["inputs"][doc][column], (value - min(values)) / (max(values) - min(values)), delta=1e-6)

        learned = json.loads(succeed("serve", "--state", self.folder / "state", "--ranker", "pairrank", "--features", FEATURES,
                                     "--import-log", lines, "--learn-only", "--json"))
        self.assertEqual(learned["rounds"], 40)
        self.assertGreater(learned["pairs"], 0)
        told = json.loads(succeed("log", "stats", "--log", self.folder / "state", "--json"))
        self.assertEqual((told["records"], told["time"]["last"]), (40, "2025-11-26T12:00:00.039Z"))
        self.assertEqual([rank["clicks"] for rank in told["ranks"]],
                         [sum(one["docs"][rank] in one["clicks"] for one in self.lists) for rank in range(4)])
        self.assertIn("documents shown a list      4.00 (4 to 4)", succeed("log", "stats", "--log", lines))

    def test_the_log_is_replayed_and_evaluated(self):
        for one in self.lists:
            one["propensity"] = [0.25, 0.5, 0.5, 1]
            one["unshown"] = [doc for query, doc in self.features if query == one["query"] and doc not in one["docs"]]
        log = self.imported("jsonl", "--from", self.write("lists", self.lists), "--normalise", "none")
        data = self.write("data.txt", "".join(
            f"{int(values[0] > 0.6)} qid:{query} {' '.join(f'{n}:{v}' for n, v in enumerate(values, 1))} # docid = {doc}\n"
            for (query, doc), values in self.features.items()))
        out = self.folder / "replayed"
        succeed("run", "--data-train", data, "--data-test", data, "--data-normalise", "none", "--ranker", "ranknet", "--seeds", 1, "--rounds", 40,
                "--replay", log, "--out", out, "--quiet")
        model = next(out.glob("trials/**/model.safetensors")).parent
        told = json.loads(succeed("ope", "--log", log, "--model", model, "--policy", "epsilon=0.5", "--at", 3, "--json"))
        self.assertEqual((told["lists"], told["without_candidates"]), (40, 0))
        self.assertEqual(told["left_out"]["without_propensity"], 0)
        # A model brings its own normalisation.
        plain = self.imported("jsonl", "--from", self.folder / "lists", "--model", model)
        self.assertEqual(plain.read_text(), log.read_text())
        self.refused(2, "contradicts the model", "log", "import", "--format", "jsonl", "--from", self.folder / "lists", "--features", self.table,
                     "--model", model, "--normalise", "query-minmax", "--out", self.log)


class OfAService(ServiceTest):
    def files(self):
        return {path.name: path.read_bytes() for path in self.state.iterdir()}

    def test_a_running_service_is_read_and_copied(self):
        service, self.log = self.start("--ranker", "pairrank", "--features", "3"), self.state / "feedback.jsonl"
        self.play(service, 6, features=3)
        before = self.files()
        shown = [json.loads(line) for line in succeed("log", "show", "--log", self.state, "--json").splitlines()]
        logged = [json.loads(line) for line in self.log.read_text().splitlines()]
        for line in logged:
            del line["inputs"], line["check"]
        self.assertEqual(shown, logged)
        some = logged[3]
        self.assertEqual(succeed("log", "show", "--log", self.log, "--impression", some["impression"], "--json"),
                         succeed("log", "show", "--log", self.log, "--from-round", 4, "--to-round", 4, "--json"))
        unclicked = succeed("log", "show", "--log", self.log, "--clicked", "false", "--to-round", 4, "--json")
        self.assertEqual([json.loads(line)["round"] for line in unclicked.splitlines()],
                         [line["round"] for line in logged[:4] if not any(line["clicks"])])
        text = succeed("log", "show", "--log", self.log, "--clicked", "true", "--limit", 1)
        first = next(line for line in logged if any(line["clicks"]))
        self.assertRegex(text, rf"^round {first['round']}, 20\S+Z, query {first['qid']}, impression {first['impression']},")
        marked = ", ".join(doc + "*" * click for doc, click in zip(first["shown"], first["clicks"], strict=True))
        self.assertIn(f"  shown: {marked}\n", text)
        told = json.loads(succeed("log", "stats", "--log", self.state, "--json"))
        self.assertEqual((told["records"], told["explored"], told["snapshots"]["first"]), (6, 1.0, 0))

        copy = self.folder / "copy.jsonl"
        self.assertEqual(succeed("log", "cut", "--log", self.state, "--from-round", 2, "--to-round", 4, "--out", copy), f"Wrote {copy}: 3 records\n")
        self.assertEqual(self.files(), before)
        self.assertEqual(service.stop(), 0)
        self.assertEqual([json.loads(line)["impression"] for line in copy.read_text().splitlines()],
                         [line["impression"] for line in logged[1:4]])
        done = json.loads(succeed("serve", "--state", self.folder / "other", "--ranker", "pairrank", "--features", 3, "--import-log", copy,
                                  "--learn-only", "--json"))
        self.assertEqual(done["rounds"], 3)
        # The end that a service is writing is not a record yet.
        with open(copy, "ab") as log:
            log.write(self.log.read_bytes()[:50])
        self.assertEqual(json.loads(succeed("log", "stats", "--log", copy, "--json"))["records"], 3)


if __name__ == "__main__":
    unittest.main()
