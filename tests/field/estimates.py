"""Compares estimates from logs with obp's, and replay with obp's and river's. evidence/field.py runs it."""

import json
import math
import os
import sys
import types

import numpy as np
from rows import row

RANKS, DOCS, QUERIES, EPSILON = 3, 6, 40, 0.3


def lists_of(data, scores, rng):
    """Draws lists from a softmax, clicked by grade and rank, with the probability of each rank."""
    for query in rng.integers(QUERIES, size=2000):
        left, shown, chances = list(range(DOCS)), [], []
        while left:
            chance = np.exp(0.5 * scores[query, left])
            chance /= chance.sum()
            place = rng.choice(len(left), p=chance)
            chances.append(float(chance[place]))
            shown.append(left.pop(place))
        grades = data.y[DOCS * query:][shown]
        clicks = (rng.random(DOCS) < (0.1 + 0.2 * grades) / (1 + np.arange(DOCS))).astype(int).tolist()
        yield {"qid": data.qids[query], "shown": shown, "clicks": clicks, "propensity": chances}


def targets(order, shown, epsilon):
    """Yields the chances of the documents left at each rank of a list, under ε-greedy lists by `order`."""
    left = list(order)
    for doc in shown:
        chance = np.zeros(DOCS)
        chance[left] = epsilon / len(left)
        chance[left[0]] += 1 - epsilon
        yield chance
        left.remove(doc)


def position_model(lists, ranks):
    """The click model of `olrank ope`, as the tests of that command write it out."""
    sys.path.append("tests/apps")
    os.environ.setdefault("OLRANK_PROGRAM", "none")  # which the tests start, and their formulas do not
    os.environ.setdefault("OLRANK_BUILD", "none")
    import ope_test

    ope_test.RANKS = ranks
    return ope_test.OffPolicy.fit_position_model(types.SimpleNamespace(lists=lists))


def by_rank(lists, orders, ranks, epsilon):
    """Makes the rows of obp's arrays, one for each rank of each list. Q is that of greedy lists: the order's documents follow below."""
    looks, attraction, level = position_model(lists, ranks)
    rows = []
    for number, line in enumerate(lists):
        qid, left = line["qid"], list(orders[line["qid"]])
        chances = list(targets(left, line["shown"], epsilon))
        of_target = [chance[doc] for chance, doc in zip(chances, line["shown"])]
        for rank, doc in enumerate(line["shown"][:ranks]):
            orders_below = [[other, *(one for one in left if one != other)] for other in range(DOCS)]
            q = [sum(looks[at] * attraction.get((qid, one), level) for at, one in enumerate(below, rank) if at < ranks) for below in orders_below]
            products = [math.prod(part[:end]) for end in (rank + 1, ranks) for part in (line["propensity"], of_target)]
            rows.append((number, rank, line["clicks"][rank], doc, *products, q, chances[rank]))
            left.remove(doc)
    return [np.array([one[column] for one in rows]) for column in range(10)]


def cases(olrank, folder):
    """Yields five logs of one data set and model: the orders by the model, the lists, and their files with the true and with equal chances."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(QUERIES * DOCS, 4)).astype(np.float32), rng.integers(3, size=QUERIES * DOCS)
    data = olrank.Dataset.from_arrays(X, y, group=[DOCS] * QUERIES)
    model = olrank.fit(data, network="linear", epochs=3, normalise="none")
    scores = np.asarray(model.score(X)).reshape(QUERIES, DOCS)
    orders = {qid: sorted(range(DOCS), key=lambda doc: -scores[query, doc]) for query, qid in enumerate(data.qids)}
    for case in range(5):
        lists = list(lists_of(data, scores, rng))
        log, uniform = folder / f"log{case}.jsonl", folder / f"uniform{case}.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lists))
        uniform.write_text("".join(json.dumps({**line, "propensity": [1 / (DOCS - rank) for rank in range(DOCS)]}) + "\n" for line in lists))
        yield data, model, orders, lists, log, uniform


def told(olrank, log, model, data, **settings):
    estimates = olrank.ope(log, model, data=data, **settings)["policies"][0]["estimates"]
    return next(iter(estimates.values()))["value"]["value"]


def by_river(olrank, folder):
    pairs = [(replay_of_river(lists, orders), told(olrank, uniform, model, data, policy="greedy", at=1, estimators="snips"))
             for data, model, orders, lists, _, uniform in cases(olrank, folder)]
    return [row("river", "bandit.evaluate_offline", "ope: snips at 1", pairs, "a policy that pulls the best document, on the same log")]


def by_obp(olrank, folder):
    from obp import ope

    found = {}
    for data, model, orders, lists, log, uniform in cases(olrank, folder):

        def add(name, ours, at, theirs, file=log, epsilon=EPSILON):
            value = told(olrank, file, model, data, policy=f"epsilon={epsilon}" if epsilon else "greedy", at=at, estimators=ours)
            found.setdefault((name, ours, at), []).append((float(theirs), value))

        for epsilon in (EPSILON, 0.0):
            slate, position, reward, action, logged, target, whole, whole_target, q, dist = by_rank(lists, orders, RANKS, epsilon)
            shared = {"slate_id": slate, "reward": reward, "position": position}
            cascade = {"pscore_cascade": logged, "evaluation_policy_pscore_cascade": target}
            if epsilon:
                for kind in ("", "SelfNormalized"):
                    made = [getattr(ope, f"{kind}Slate{one}IPS")(len_list=RANKS) for one in ("Standard", "RewardInteraction")]
                    add(f"{kind}SlateStandardIPS", "snips" if kind else "ips", RANKS,
                        made[0].estimate_policy_value(**shared, pscore=whole, evaluation_policy_pscore=whole_target))
                    add(f"{kind}SlateRewardInteractionIPS", "snrips" if kind else "rips", RANKS, made[1].estimate_policy_value(**shared, **cascade))
            else:
                made = ope.SlateCascadeDoublyRobust(len_list=RANKS, n_unique_action=DOCS)
                of_model = {"action": action, "q_hat": q.flatten(), "evaluation_policy_action_dist": dist.flatten()}
                value = made.estimate_policy_value(**shared, **cascade, **of_model)
                add("SlateCascadeDoublyRobust", "cascade-dr", RANKS, value, epsilon=0)
            _, position, reward, action, logged, _, _, _, q, dist = by_rank(lists, orders, 1, epsilon)
            plain = {"reward": reward, "action": action, "action_dist": dist[:, :, None], "pscore": logged, "position": position}
            of_names = {"InverseProbabilityWeighting": "ips", "SelfNormalizedInverseProbabilityWeighting": "snips"}
            for name, ours in (of_names if epsilon else {"DirectMethod": "direct", "DoublyRobust": "cascade-dr"}).items():
                add(name, ours, 1, getattr(ope, name)().estimate_policy_value(**plain, estimated_rewards_by_reg_model=q[:, :, None]), epsilon=epsilon)
        add("ReplayMethod", "snips", 1, ope.ReplayMethod().estimate_policy_value(**plain), uniform, epsilon=0)
    greedy = "greedy lists, with the same click model"
    notes = {"ReplayMethod": "a log of equal chances, as it has no weights",
             "SlateCascadeDoublyRobust": greedy, "DoublyRobust": greedy, "DirectMethod": greedy}
    rows = [row("obp", name, f"ope: {ours} at {at}", pairs, notes.get(name, ""))
            for (name, ours, at), pairs in found.items()]
    rows.append(row("obp", "SlateIndependentIPS, SelfNormalizedSlateIndependentIPS", "–", (),
                    "logs have the chance of a document given those above it, and these want that of a document at a rank"))
    rows.append(row("obp", "DoublyRobust and IPW with switches, shrinkage, tuned clips or embeddings", "–", (), "olrank has none of them"))
    return rows


def replay_of_river(lists, orders):
    from river import bandit

    class Greedy(bandit.base.ContextualPolicy):
        def _pull(self, arm_ids, context):
            return orders[context][0]

    total, count = bandit.evaluate_offline(Greedy(), [(list(range(DOCS)), one["qid"], one["shown"][0], one["clicks"][0]) for one in lists])
    return total.get() / count
