"""`olrank ope`: estimates recomputed here from the trace and the model's scores; what a log lacks is said. tests/field compares them
with the Open Bandit Pipeline."""

import json
import math
import pathlib
import random
import tempfile
import unittest

from command_line import CommandTest, olrank, succeed

RANKS = 3
EPSILON = 0.3


class OffPolicy(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data = cls.folder / "data.txt"
        draws = random.Random(3)
        with open(cls.data, "w") as file:
            for query in range(20):
                for _ in range(6):
                    features = [round(draws.random(), 3) for _ in range(4)]
                    print(int(2.5 * features[0] + draws.random()), f"qid:{query}", *(f"{n + 1}:{v}" for n, v in enumerate(features)), file=file)
        shared = ["--data-train", cls.data, "--data-test", cls.data, "--seeds", 1, "--clicks", "navigational", "--quiet"]
        cls.trace = cls.folder / "trace.jsonl"
        succeed("run", *shared, "--ranker", "pdgd", "--rounds", 600, "--trace", cls.trace, "--out", cls.folder / "shown")
        succeed("run", *shared, "--ranker", "pairrank", "--rounds", 300, "--out", cls.folder / "other")
        cls.model = cls.folder / "other/trials/pairrank/navigational/fold1/seed1"
        lines = succeed("rank", "--model", cls.model, "--data", cls.data, "--format", "scores", "--out", "-").split()
        cls.scores = {str(query): [float(score) for score in lines[6 * query : 6 * query + 6]] for query in range(20)}
        cls.lists = [json.loads(line) for line in cls.trace.read_text().splitlines()[1:]]

    def target(self, line):
        """Returns the probability of each shown document under epsilon-greedy lists."""
        scores, left, found = self.scores[line["qid"]], list(range(6)), []
        for doc in line["shown"]:
            best = min(left, key=lambda other: (-scores[other], other))
            found.append((1 - EPSILON if doc == best else 0) + EPSILON / len(left))
            left.remove(doc)
        return found

    def ope(self, *arguments, log=None, model=None, policy=f"epsilon={EPSILON}"):
        """Returns what the command prints of the model's policy."""
        return succeed("ope", "--log", log or self.trace, "--data", self.data, "--model", model or self.model, "--policy", policy, "--at", RANKS,
                       *arguments)

    def told(self, *arguments, **options):
        return json.loads(self.ope("--json", *arguments, **options))

    def log_of(self, name, changed, keys=("qid", "shown", "clicks", "propensity")):
        """A log of the lists of the trace with these keys, and with what `changed` gives for a number and a list. It leaves out a None."""
        path = self.folder / name
        with open(path, "w") as file:
            for number, line in enumerate(self.lists):
                if (change := changed(number, line)) is not None:
                    print(json.dumps({key: line[key] for key in keys} | change), file=file)
        return path

    def test_estimates_are_the_formulas(self):
        ips = rips = weights = shown = 0.0
        prefixes, prefix_weights = [0.0] * RANKS, [0.0] * RANKS
        for line in self.lists:
            weight, reward = 1.0, 0.0
            for rank, target in enumerate(self.target(line)[:RANKS]):
                weight *= target / line["propensity"][rank]
                reward += line["clicks"][rank]
                prefixes[rank] += weight * line["clicks"][rank]
                prefix_weights[rank] += weight
            ips += weight * reward
            weights += weight
            shown += reward
        count = len(self.lists)
        told = self.told()
        self.assertEqual(told["lists"], count)
        self.assertAlmostEqual(told["shown"]["value"], shown / count, delta=1e-9)
        estimates = told["policies"][0]["estimates"]
        expected = {"ips": ips / count, "snips": ips / weights, "rips": sum(prefixes) / count,
                    "snrips": sum(a / b for a, b in zip(prefixes, prefix_weights, strict=True))}
        self.assertEqual(set(estimates), {*expected, "direct", "cascade-dr", "intervention-aware"})
        chosen = self.told("--estimators", "snips,rips")["policies"][0]["estimates"]
        self.assertEqual(chosen, {name: estimates[name] for name in ("rips", "snips")})
        for name, value in expected.items():
            self.assertAlmostEqual(estimates[name]["value"]["value"], value, delta=1e-9, msg=name)
            self.assertAlmostEqual(estimates[name]["difference"]["value"], value - shown / count, delta=1e-9, msg=name)
            self.assertLess(estimates[name]["value"]["low"], value)
            self.assertGreater(estimates[name]["value"]["high"], value)
        self.assertAlmostEqual(told["policies"][0]["whole_lists"]["mean_weight"], weights / count, delta=1e-9)

    def fit_position_model(self):
        """Attraction of (query, document) and examination of ranks, by expectation maximisation written out."""
        level = (sum(line["clicks"][0] for line in self.lists) + 1) / (len(self.lists) + 2)
        looks, last = [1.0, 0.5, 0.5], None
        shown = [(rank, (line["qid"], doc), line["clicks"][rank]) for line in self.lists for rank, doc in enumerate(line["shown"][:RANKS])]
        attraction = {doc: level for _, doc, _ in shown}
        for _ in range(100):
            prior = sum(math.log(p) + math.log(1 - p) for p in looks[1:])
            prior += sum(2 * level * math.log(p) + 2 * (1 - level) * math.log(1 - p) for p in attraction.values())
            yes, no = [1.0] * RANKS, [1.0] * RANKS
            liked = {doc: [2 * level, 2 * (1 - level)] for _, doc, _ in shown}
            objective = prior
            for rank, doc, click in shown:
                p = attraction[doc]
                objective += math.log(looks[rank] * p if click else 1 - looks[rank] * p)
                examined = 1.0 if click else looks[rank] * (1 - p) / (1 - looks[rank] * p)
                yes[rank], no[rank] = yes[rank] + examined, no[rank] + 1 - examined
                liked[doc] = [liked[doc][0] + click, liked[doc][1] + examined * (1 - click)]
            looks = [1.0, *(yes[rank] / (yes[rank] + no[rank]) for rank in range(1, RANKS))]
            attraction = {doc: likes / (likes + not_likes) for doc, (likes, not_likes) in liked.items()}
            if last is not None and objective - last < 1e-6 * len(shown):
                break
            last = objective
        return looks, attraction, level

    def test_estimates_by_a_click_model_are_the_formulas(self):
        looks, attraction, level = self.fit_position_model()
        told = self.told(policy="greedy")
        clicks, exposure = {}, {}
        for line in self.lists:
            for rank, doc in enumerate(line["shown"][:RANKS]):
                key = line["qid"], doc
                clicks[key] = clicks.get(key, 0) + line["clicks"][rank]
                exposure[key] = exposure.get(key, 0) + looks[rank]
        direct = doubly = aware = 0.0
        for line in self.lists:
            qid, scores = line["qid"], self.scores[line["qid"]]
            best = sorted(range(6), key=lambda doc: -scores[doc])
            of_model = [looks[rank] * attraction.get((qid, doc), level) for rank, doc in enumerate(best[:RANKS])]
            direct += sum(of_model)
            doubly += sum(of_model)
            for rank, doc in enumerate(best[:RANKS]):
                key = qid, doc
                aware += looks[rank] * (clicks[key] / exposure[key] if key in exposure else attraction.get(key, level))
            weight = 1.0
            for rank, doc in enumerate(line["shown"][:RANKS]):
                weight *= (doc == best[rank]) / line["propensity"][rank]  # the weight of a list that leaves the order stays 0
                doubly += weight * (line["clicks"][rank] - looks[rank] * attraction[qid, doc])
        estimates = told["policies"][0]["estimates"]
        count = len(self.lists)
        for name, value in {"direct": direct / count, "cascade-dr": doubly / count, "intervention-aware": aware / count}.items():
            self.assertAlmostEqual(estimates[name]["value"]["value"], value, delta=1e-9, msg=name)

    def test_documents_that_were_never_shown_rest_on_the_model(self):
        def first_docs(_, line):
            kept = [rank for rank, doc in enumerate(line["shown"]) if doc < 3]
            return {key: [line[key][rank] for rank in kept] for key in ("shown", "clicks")} | {"propensity": [0.5] * len(kept)} if kept else None

        narrow = self.log_of("narrow.jsonl", first_docs)
        arguments = ["--log", narrow, "--data", self.data, "--model", self.model, "--at", 1]
        told = json.loads(succeed("ope", *arguments, "--json"))
        lists = [json.loads(line) for line in narrow.read_text().splitlines()]
        unseen = sum(max(range(6), key=lambda doc, line=line: self.scores[line["qid"]][doc]) >= 3 for line in lists) / len(lists)
        self.assertGreater(unseen, 0.1)
        self.assertAlmostEqual(told["policies"][0]["unseen"], unseen, delta=1e-9)
        self.assertIn(f"{100 * unseen:.1f} % was never shown", succeed("ope", *arguments))

    def test_without_probabilities_the_models_estimates_are_left(self):
        bare = self.log_of("without.jsonl", lambda *_: {}, ("qid", "shown", "clicks"))
        told, before = (self.told(log=log, policy="greedy") for log in (bare, self.trace))
        estimates = told["policies"][0]["estimates"]
        self.assertEqual(estimates, {name: before["policies"][0]["estimates"][name] for name in ("direct", "intervention-aware")})
        self.assertIn("estimates by weights are left out", self.ope(log=bare, policy="greedy"))

    def test_what_an_observed_learner_would_have_shown(self):
        """Lists of the incumbent, with the learner's in the log: by the greedy lists of a model, the same values as by the model."""
        def of_the_incumbent(_, line):
            best = sorted(range(6), key=lambda doc: -self.scores[line["qid"]][doc])[:RANKS]
            return {"arm": "incumbent", "shown": line["shown"][:RANKS], "clicks": line["clicks"][:RANKS], "candidate": best}

        observed = self.log_of("observed.jsonl", of_the_incumbent, ("qid",))
        candidate = ["ope", "--log", observed, "--policy", "candidate", "--at", RANKS, "--json"]
        told, by_data = (json.loads(succeed(*candidate, *data)) for data in ((), ("--data", self.data)))
        by_model = self.told(log=observed, policy="greedy")
        self.assertEqual(told["lists"], 600)
        self.assertEqual(set(told["policies"][0]["estimates"]), {"direct", "intervention-aware"})
        for other in (by_data, by_model):
            for name, estimate in told["policies"][0]["estimates"].items():
                self.assertAlmostEqual(estimate["value"]["value"], other["policies"][0]["estimates"][name]["value"]["value"], delta=1e-12)

    def incumbents_log(self, own, drops=()):
        """A log in which the arm of the incumbent has shown `own` lists in its order, and the learner the others."""
        def with_arm(number, line):
            is_own, shown = number < own, line["shown"]
            change = {"arm": "incumbent" if is_own else "learner", "incumbent": shown if is_own else [*reversed(shown)]}
            return change if change["arm"] in drops else change | {"propensity": [1.0] * len(shown) if is_own else line["propensity"]}

        return "--log", self.log_of("incumbent.jsonl", with_arm, ("qid", "shown", "clicks")), "--policy", "incumbent", "--at", RANKS

    def test_the_incumbents_own_lists_are_its_estimate(self):
        arguments = self.incumbents_log(240)
        told = json.loads(succeed("ope", *arguments, "--json"))
        own, others = ([sum(line["clicks"][:RANKS]) for line in part] for part in (self.lists[:240], self.lists[240:]))
        self.assertEqual((told["own_lists"], told["lists"], told["left_out"]["of_other_arms"]), (True, 240, 360))
        for name in ("ips", "rips", "snips", "snrips", "cascade-dr"):
            self.assertAlmostEqual(told["policies"][0]["estimates"][name]["value"]["value"], sum(own) / 240, 9, name)
        self.assertEqual(told["policies"][0]["whole_lists"]["effective_lists"], 240)
        self.assertEqual(told["learner"]["lists"], 360)
        self.assertAlmostEqual(told["learner"]["shown"]["value"], sum(others) / 360, 9)
        text = succeed("ope", *arguments)
        self.assertIn("The estimates are those of the 240 lists that the incumbent's arm has shown. The 360 lists of the learner got ", text)
        self.assertIn("360 lists of other arms than the incumbent were left out.", text)

    def test_a_few_lists_of_the_incumbent_are_no_estimate(self):
        told = json.loads(succeed("ope", *self.incumbents_log(99), "--json"))
        self.assertNotIn("own_lists", told)
        self.assertEqual((told["lists"], told["left_out"]["of_other_arms"]), (501, 99))

    def test_says_which_lists_lack_probabilities(self):
        text = succeed("ope", *self.incumbents_log(99, ("learner",)))
        self.assertIn("No list of the learner has the probability that it was shown with: estimates by weights are left out. "
                      "501 lists of the learner have none. A service logs none for posterior samples", text)
        self.assertIn("99 lists are of other arms, or drafted from two.", text)
        self.assertNotIn("were left out", text)  # direct and intervention-aware have all lists
        done = olrank("ope", *self.incumbents_log(99, ("learner",)), "--estimators", "ips,direct", "--json")
        self.assertEqual(list(json.loads(done.stdout)["policies"][0]["estimates"]), ["direct"])
        done = olrank("ope", *self.incumbents_log(99, ("learner",)), "--estimators", "ips")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has none. 501 lists of the learner have none. A service logs none for posterior samples", done.stderr)

    def test_counts_what_events_are_worth_and_the_learners_lists_alone(self):
        log = self.log_of("arms.jsonl", lambda number, line: {"rewards": [3 * click for click in line["clicks"]],
                                                              "arm": "learner" if number % 3 else "incumbent"})
        clicks, weight = (self.told("--reward", reward, log=log) for reward in ("clicks", "weight"))
        self.assertEqual((clicks["lists"], clicks["left_out"]["of_other_arms"]), (400, 200))
        self.assertAlmostEqual(weight["shown"]["value"], 3 * clicks["shown"]["value"], 9)
        for name, estimate in clicks["policies"][0]["estimates"].items():
            self.assertAlmostEqual(weight["policies"][0]["estimates"][name]["value"]["value"], 3 * estimate["value"]["value"], 9)

    def test_lists_whose_probabilities_are_too_small_are_left_out(self):
        """All the others count as without them, for all policies alike; a clip bounds their weights."""
        broken, without = self.folder / "broken.jsonl", self.folder / "unbroken.jsonl"
        lines = self.trace.read_text().splitlines(True)
        changed = json.loads(lines[7])
        changed["propensity"][1] = 1e-320
        broken.write_text("".join([*lines[:7], json.dumps(changed) + "\n", *lines[8:]]))
        without.write_text("".join([*lines[:7], *lines[8:]]))
        arguments = ["--data", self.data, "--model", self.model, "--model", self.folder / "shown/trials/pdgd/navigational/fold1/seed1",
                     "--policy", "epsilon=0.3", "--at", RANKS, "--estimators", "ips,rips,snips,snrips", "--json"]
        done = olrank("ope", "--log", broken, *arguments)
        self.assertIn(f"{broken}:8: The probabilities of this list are too small for a weight: left out.", done.stderr)
        told, expected = json.loads(done.stdout), json.loads(succeed("ope", "--log", without, *arguments))
        self.assertEqual((told["lists"], told["left_out"]["beyond_weight"], expected["left_out"]["beyond_weight"]), (599, 1, 0))
        self.assertEqual((told["shown"], told["policies"]), (expected["shown"], expected["policies"]))
        clipped = json.loads(succeed("ope", "--log", broken, *arguments, "--clip", 10))
        self.assertEqual((clipped["lists"], clipped["policies"][0]["whole_lists"]["largest_weight"]), (600, 10))
        broken.write_text(json.dumps(changed) + "\n")
        done = olrank("ope", "--log", broken, *arguments[:-3])
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("the probabilities of 1 are too small", done.stderr)

    def test_the_logging_policy_itself_has_weight_one(self):
        own = self.folder / "shown/trials/pdgd/navigational/fold1/seed1"
        told = self.told(model=own, policy="plackett-luce")
        # The model is that of the end: the policy moved while it was logged.
        self.assertAlmostEqual(told["policies"][0]["whole_lists"]["mean_weight"], 1.0, delta=0.15)

    def test_too_few_effective_lists_are_no_decision(self):
        few = self.folder / "few.jsonl"
        few.write_text("".join(self.trace.read_text().splitlines(True)[:60]))
        for log, are_few in ((self.trace, False), (few, True)):
            lists = self.told(log=log)["policies"][0]["whole_lists"]["effective_lists"]
            self.assertEqual(lists < 100, are_few)
            text = self.ope(log=log)
            self.assertEqual("do not decide by ips" in text, are_few)
            self.assertEqual(text.count(f" {lists:.0f}, too few"), 5 if are_few else 0)


if __name__ == "__main__":
    unittest.main()
