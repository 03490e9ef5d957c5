"""Compares metrics with ir-measures and allRank. evidence/field.py runs it, and tests/python/test_field.py what needs no torch."""

import numpy as np
from rows import row

QUERIES = 40


def cases():
    rng = np.random.default_rng(9)
    for _ in range(5):
        yield rng.integers(5, size=(QUERIES, 20)), rng.permutation(QUERIES * 20).reshape(QUERIES, 20) / 8, [20] * QUERIES


def by_ir_measures(olrank):
    import ir_measures

    named = {"ndcg@5": "nDCG@5", "ndcg@10": "nDCG@10", "map": "AP", "map@10": "AP@10", "mrr": "RR", "p@10": "P@10"}
    by_gdeval = {"ndcg@10": "nDCG(dcg='exp-log2')@10", "err@10": "ERR@10"}
    found = {}
    for grades, scores, group in cases():
        qrels = {str(query): {f"d{doc:02}": int(grades[query, doc]) for doc in range(20)} for query in range(QUERIES)}
        run = {str(query): {f"d{doc:02}": float(scores[query, doc]) for doc in range(20)} for query in range(QUERIES)}
        for provider, convention, table in (("pytrec_eval", "trec_eval", named), ("gdeval", "olrank", by_gdeval)):
            measures = {ours: ir_measures.parse_measure(name) for ours, name in table.items()}
            values = ir_measures.providers.registry[provider].calc_aggregate(list(measures.values()), qrels, run)
            ours = olrank.evaluate(grades.ravel(), scores.ravel(), group=group, at=[5, 10], metrics=["map@10"], convention=convention, max_grade=4)
            for name, measure in measures.items():
                found.setdefault(("ir-measures", f"{measure} ({provider})", name, convention), []).append((values[measure], ours[name]))
    return rows(found)


def by_allrank(olrank):
    import torch
    from allrank.models import metrics as theirs

    found = {}
    for grades, scores, group in cases():
        s, y = torch.tensor(scores), torch.tensor(grades, dtype=torch.float64)
        ours = olrank.evaluate(grades.ravel(), scores.ravel(), group=group, at=[5, 10], convention="lightgbm")
        for at in (5, 10):
            value = float(theirs.ndcg(s.clone(), y.clone(), ats=[at]).mean())
            found.setdefault(("allRank", "metrics.ndcg", f"ndcg@{at}", "lightgbm"), []).append((value, ours[f"ndcg@{at}"]))
    return rows(found)


def rows(found):
    return [row(package, name, f"{ours} ({convention})", pairs, "prints five digits a query" if "gdeval" in name else "")
            for (package, name, ours, convention), pairs in found.items()]
