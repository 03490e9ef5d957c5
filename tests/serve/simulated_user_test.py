"""A simulated user drives the service through the client for 1,000 rounds. The learned ranker's NDCG on held-out queries
matches `olrank run` with the same ranker, within the noise between seeds."""

import json
import pathlib
import random
import statistics
import tempfile

from running_service import RunningService, olrank

ROUNDS, CUTOFF = 1000, 10
RANKER = ["--ranker", "olranknet", "--width", "16", "--steps", "10", "--covariance", "full"]
# The perfect user for five grades: P(click | grade); never stops.
CLICK = [0.0, 0.2, 0.4, 0.8, 1.0]


def read_letor(path):
    """Query → documents in file order, each (grade, {feature: value})."""
    queries = {}
    for line in path.read_text().splitlines():
        grade, qid, *features = line.split("#")[0].split()
        pairs = (feature.split(":") for feature in features)
        queries.setdefault(qid[4:], []).append((int(float(grade)), {number: float(value) for number, value in pairs}))
    return queries


def request_docs(docs):
    return [{"id": f"d{i}", "features": features} for i, (_, features) in enumerate(docs)]


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    done = olrank("data", "synth", "mslr-like?queries=120&features=30", "--out", folder / "data")
    assert done.returncode == 0, done.stderr
    done = olrank("run", "--data", folder / "data", *RANKER, "--clicks", "perfect", "--rounds", ROUNDS, "--seeds", "1-5",
                  "--out", folder / "run", "--quiet")
    assert done.returncode == 0, done.stderr
    expected = [json.loads(path.read_text())["last"]["offline"][f"ndcg@{CUTOFF}"]
                for path in (folder / "run").glob("trials/**/summary.json")]
    assert len(expected) == 5, expected

    train, test = (read_letor(folder / "data" / f"{part}.txt") for part in ("train", "test"))
    features = max(int(number) for docs in train.values() for _, row in docs for number in row)
    service = RunningService(folder / "state", *RANKER, "--features", features)
    draw = random.Random(1)
    with service.client() as client:
        qids = sorted(train)
        for _ in range(ROUNDS):
            qid = draw.choice(qids)
            ranking = client.rank(qid, request_docs(train[qid]), k=CUTOFF)
            clicks = [rank for rank, doc in enumerate(ranking["docs"])
                      if draw.random() < CLICK[train[qid][int(doc["id"][1:])][0]]]
            client.feedback(ranking["impression"], clicks)
        stats = client.wait_until_learned(300)
        assert stats["rounds"] == ROUNDS
        with open(folder / "scores.txt", "w", encoding="ascii") as scores:
            for qid, docs in test.items():
                ranking = client.rank(qid, request_docs(docs), k=len(docs), explore=False)
                of_doc = {doc["id"]: doc["score"] for doc in ranking["docs"]}
                scores.writelines(f"{of_doc[f'd{i}']!r}\n" for i in range(len(docs)))
    assert service.stop() == 0
    done = olrank("eval", "--data", folder / "data", "--part", "test", "--scores", folder / "scores.txt", "--at", CUTOFF,
                  "--empty-queries", "zero", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    reached = next(value for key, value in
                   (report if isinstance(report, dict) else report[0])["metrics"].items() if key == f"ndcg@{CUTOFF}")
    mean, spread = statistics.mean(expected), statistics.stdev(expected)
    # Prediction interval for one more seed at four standard errors: with five seeds, 1.6 % false alarms.
    margin = max(0.01, 4 * spread * (1 + 1 / len(expected)) ** 0.5)
    print(f"NDCG@{CUTOFF} {reached:.4f} through the service, {mean:.4f} ± {spread:.4f} by olrank run; {stats['pairs']} pairs")
    assert abs(reached - mean) <= margin, f"further than {margin:.4f} apart"
