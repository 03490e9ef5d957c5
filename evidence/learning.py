"""Learning from logs: what models of clicks come to, on simulated logs whose truth is known.

evidence/learning.py NAME SOURCE PROGRAM  takes the study of a data set, fold 1 of a folder or a synth: name, into
                                          docs/evidence/learning.json; needs numpy and lightgbm

A log has 4,000 lists of ten documents, drawn by Plackett-Luce from a linear model that was trained on 1 % of the queries
with their grades. Intervals are 95 % t intervals over five logs."""

import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import records
import tables

LISTS, SHOWN, SEEDS = 4000, 10, range(1, 6)
ESTIMATORS = ("naive", "ips", "dr", "two-tower", "regression-em")
TRUST = {"ips-trust": "ips", "dr-trust": "dr"}  # by the click model trust, for all users
USERS = {"position-biased": "pbm", "trust-biased": "pbm", "cascade": "cascade"}  # and the click model of ips and dr
NAMES = {"clickgp": "`clickgp`, replayed", "lightgbm": "LightGBM, debiased", "lightgbm-truth": "LightGBM on grades",
         "ips-trust": "`ips` by `trust`", "dr-trust": "`dr` by `trust`", "truth": "linear on grades", "logging": "what showed the lists"}


def clicks_of(np, user, relevance, coins):
    """Clicks on a list of documents, best first, by their relevance from 0 to 1."""
    attraction = 0.1 + 0.9 * relevance
    ranks = np.arange(1, len(relevance) + 1)
    if user == "trust-biased":  # Agarwal et al., WWW 2019: what is not relevant is clicked more at the top
        attraction = np.maximum(attraction, 0.6 / ranks)
    clicks = coins.random(len(relevance)) < attraction
    if user == "cascade":
        return clicks & (np.cumsum(clicks) == 1)
    return clicks & (coins.random(len(relevance)) < 1 / ranks)


def write_log(np, file, user, parts, scores, coins):
    grades, offsets, qids = parts
    relevance = (2.0 ** grades - 1) / (2.0 ** grades.max() - 1)
    groups = []
    with open(file, "w") as out:
        for _ in range(LISTS):
            query = coins.integers(len(qids))
            begin, end = offsets[query:query + 2]
            weights = np.exp(scores[begin:end] - scores[begin:end].max())
            order = np.argsort(-(np.log(weights) + coins.gumbel(size=end - begin)))[:SHOWN]
            left = weights.sum() - np.concatenate(([0], np.cumsum(weights[order])[:-1]))
            propensity = np.clip(weights[order] / np.maximum(left, 1e-12), 1e-9, 1)
            clicks = clicks_of(np, user, relevance[begin:end][order], coins).astype(int)
            out.write(json.dumps({"qid": qids[query], "shown": order.tolist(), "clicks": clicks.tolist(), "propensity": propensity.tolist()}) + "\n")
            groups.append((begin + order, clicks))
    return groups


def read_letor(np, file):
    """Features scaled by query as the program scales them, grades, offsets and names of queries."""
    rows, grades, qids = [], [], []
    for line in open(file):
        grade, qid, *pairs = line.split("#")[0].split()
        grades.append(int(grade))
        qids.append(qid.removeprefix("qid:"))
        rows.append({int(key): float(value) for key, value in (pair.split(":") for pair in pairs)})
    X = np.zeros((len(rows), max(max(row) for row in rows)))
    for row, values in enumerate(rows):
        X[row, np.fromiter(values, int) - 1] = list(values.values())
    begins = [0, *(at for at in range(1, len(qids)) if qids[at] != qids[at - 1])]
    offsets = np.array([*begins, len(qids)])
    for begin, end in zip(offsets[:-1], offsets[1:]):
        low, high = X[begin:end].min(axis=0), X[begin:end].max(axis=0)
        X[begin:end] = (X[begin:end] - low) / np.where(high > low, high - low, 1)
    return X, (np.array(grades), offsets, [qids[begin] for begin in begins])


def study(source, program):
    import lightgbm
    import numpy as np

    folder = pathlib.Path(tempfile.mkdtemp())

    def olrank(*arguments):
        return subprocess.run([program, *map(str, arguments), "--quiet"], check=True, capture_output=True, text=True).stdout

    def trained(*arguments):
        olrank("train", *DATA, "--network", "linear", "--threads", 1, "--force", "--out", folder / "model", *arguments)
        return round(json.loads((folder / "model/summary.json").read_text())["test"]["ndcg@10"], 5)

    def trees(X, label, groups, position=None, **more):
        data = lightgbm.Dataset(X, label, group=groups, position=position, free_raw_data=False)
        settings = {"objective": "lambdarank", "num_leaves": 31, "learning_rate": 0.05, "num_threads": 1, "seed": 1, "verbose": -1,
                    "deterministic": True, "lambdarank_truncation_level": 10, **more}
        np.savetxt(folder / "trees.txt", lightgbm.train(settings, data, 100).predict(X_test))
        found = olrank("eval", "--data", parts["test"], "--scores", folder / "trees.txt", "--json")
        return round(json.loads(found)["metrics"]["ndcg@10"], 5)

    parts = {part: folder / f"{part}.txt" for part in ("train", "test")}
    if source.startswith("synth:"):
        olrank("data", "synth", source.removeprefix("synth:"), "--out", folder)
    else:  # fold 1 of LETOR
        for part, names in (("train", ("S1", "S2", "S3")), ("test", ("S5",))):
            parts[part].write_text("".join(gzip.open(pathlib.Path(source, f"{name}.txt.gz"), "rt").read() for name in names))
    (X, train), (X_test, _) = (read_letor(np, parts[part]) for part in ("train", "test"))
    DATA = ["--data-train", parts["train"], "--data-test", parts["test"]]
    truth, trees_truth = trained(), trees(X, train[0], np.diff(train[1]))
    trials = []
    for user in USERS:
        for seed in SEEDS:
            coins = np.random.default_rng([seed, list(USERS).index(user)])
            graded = [query for query, end in enumerate(train[1][1:]) if len(set(train[0][train[1][query]:end])) > 1]
            few = sorted(coins.permutation(graded)[:max(3, len(train[2]) // 100)])
            lines = open(parts["train"]).readlines()
            (folder / "few.txt").write_text("".join("".join(lines[train[1][query]:train[1][query + 1]]) for query in few))
            olrank("train", "--data-train", folder / "few.txt", "--data-test", parts["test"], "--network", "linear", "--l2", 0.01,
                   "--force", "--out", folder / "few")
            olrank("rank", "--model", folder / "few", "--data", parts["train"], "--format", "scores", "--out", folder / "scores.txt")
            scores = np.loadtxt(folder / "scores.txt")
            groups = write_log(np, folder / "log.jsonl", user, train, scores, coins)
            figures = {"logging": round(json.loads((folder / "few/summary.json").read_text())["test"]["ndcg@10"], 5)}
            for estimator in ESTIMATORS:
                figures[estimator] = trained("--log", folder / "log.jsonl", "--estimator", estimator, "--click-model", USERS[user])
            for name, estimator in TRUST.items():
                figures[name] = trained("--log", folder / "log.jsonl", "--estimator", estimator, "--click-model", "trust")
            olrank("run", *DATA, "--replay", folder / "log.jsonl", "--ranker", "clickgp", "--seeds", 1, "--rounds", LISTS, "--eval-every", LISTS,
                   "--threads", 1, "--force", "--out", folder / "run")
            curve = next((folder / "run").rglob("curve.jsonl")).read_text().splitlines()
            figures["clickgp"] = round(json.loads(curve[-1])["offline"]["ndcg@10"], 5)
            shown = [(docs, clicks) for docs, clicks in groups if clicks.any()]
            figures["lightgbm"] = trees(X[np.concatenate([docs for docs, _ in shown])], np.concatenate([clicks for _, clicks in shown]),
                                        [len(docs) for docs, _ in shown], np.concatenate([np.arange(len(docs)) for docs, _ in shown]),
                                        lambdarank_position_bias_regularization=0.1)
            trials.append({"user": user, "seed": seed, **figures, "truth": truth, "lightgbm-truth": trees_truth})
            print(trials[-1], flush=True)
    return {"source": source if source.startswith("synth:") else "MQ2008, fold 1", "lists": LISTS, "lightgbm": lightgbm.__version__, "trials": trials}


def table(name):
    found = records.read("learning", name)
    rows = []
    for key in ("logging", *ESTIMATORS, *TRUST, "clickgp", "lightgbm", "truth", "lightgbm-truth"):
        cells = []
        for user in USERS:
            values = [trial[key] for trial in found["trials"] if trial["user"] == user]
            same = len(set(values)) == 1
            cells.append(f"{statistics.fmean(values):.3f}" + ("" if same else f" ± {tables.half_width(values):.3f}"))
        rows.append([NAMES.get(key, f"`{key}`"), *cells])
    return tables.markdown(["learned by", *USERS], rows)


TABLES = {name: lambda name=name: table(name) for name in ("generated", "mslr-like", "mq2008")}


if __name__ == "__main__":
    records.write("learning", sys.argv[1], study(sys.argv[2], sys.argv[3]))
