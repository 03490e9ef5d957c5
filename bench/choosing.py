"""The tables of docs/CHOOSING.md from docs/evidence/choosing, and its files from experiments.

bench/choosing.py --add NAME OUT [--seeds]     takes the trials of an experiment of configs/choosing/NAME.toml; those of
                                               other rankers and users stay, and with --seeds those of other seeds, too

bench/pages.py writes the tables into the page. Differences are of trials with the same fold and seed, ± half the width of their
95 % t interval."""

import argparse
import json
import pathlib
import statistics

import papers
import tables

FILES = pathlib.Path("docs/evidence/choosing")
DATA = {"mq2008": "MQ2008, five folds", "clueweb09": "ClueWeb09, five folds", "mslr-sample": "MSLR, 90 queries",
        "mslr-like": "generated, nonlinear, many repeats", "yahoo-like": "generated like Yahoo, many repeats",
        "mslr-like-few-repeats": "generated, linear, few repeats", "raw": "generated, raw heavy tails", "changing": "MQ2008, changing users", "cost": ""}
APART = ("changing", "cost")  # data without rows in the tables of quality
RECOMMENDED = "clickgp"
EARLY_ROUND = 100
CHANGE_ROUND, RECOVERED_BY = 1000, 500


def trial_of(file):
    summary = json.loads(file.read_text())
    curve = [json.loads(line) for line in (file.parent / "curve.jsonl").read_text().splitlines()]
    curve = [point for point in curve if point["round"] > 0]
    last = curve[-1]
    wrong = [(point["false_certain"]["share"] * point["false_certain"]["of"], point["false_certain"]["of"])
             for point in curve if "false_certain" in point]
    stated = [[one["from"], sum(point["stated"][at]["of"] and point["stated"][at]["wrong"] * point["stated"][at]["of"]
                                for point in curve if "stated" in point),
               sum(point["stated"][at]["of"] for point in curve if "stated" in point)]
              for at, one in enumerate(next((point["stated"] for point in curve if "stated" in point), []))]
    certain = [point["certain_share"] for point in curve if point["certain_share"] is not None]
    seconds = sum(value for stage, value in summary["seconds_by_stage"].items() if stage != "eval")
    return {"user": summary["clicks"], "ranker": summary["ranker"], "fold": summary["fold"], "seed": summary["seed"],
            "offline": round(last["offline"]["ndcg@10"], 5), "online": round(last["online"]["cndcg@10"], 3),
            "random": [round(last["random"]["offline"]["ndcg@10"], 5), round(last["random"]["online"]["cndcg@10"], 3)],
            "below_random": sum(point["offline"]["ndcg@10"] < point["random"]["offline"]["ndcg@10"] for point in curve
                                if point["round"] >= EARLY_ROUND),
            "certain": round(statistics.fmean(certain), 5) if certain else None,
            "wrong": [round(sum(one for one, _ in wrong)), sum(of for _, of in wrong)],
            "stated": [[begin, round(count), of] for begin, count, of in stated],
            "lists": [[point["round"], round(point["online"]["ndcg@10"] * point["round"], 4)] for point in curve],
            **({"changes": round(last["changes"])} if "changes" in last else {}),
            "ms": round(1e3 * seconds / summary["rounds"], 3)}


def add(name, out, keep_seeds):
    manifest = json.loads((out / "manifest.json").read_text())
    config = manifest["config"]
    trials = [trial_of(file) for file in out.glob("trials/*/*/fold*/seed*/summary.json")]
    users, rankers = config["clicks"]["models"], [ranker["name"] for ranker in config["ranker"]]
    # Times of another run do not compare.
    before = [] if name == "cost" else (read(name) or {"trials": []})["trials"]
    seeds = {trial["seed"] for trial in trials}
    others = [trial for trial in before if trial["ranker"] not in rankers or trial["user"] not in users
              or (keep_seeds and trial["seed"] not in seeds)]
    users = list(dict.fromkeys([trial["user"] for trial in before] + users))
    rankers = list(dict.fromkeys([trial["ranker"] for trial in before] + rankers))
    if name != "changing":
        for trial in trials:
            del trial["lists"]
    trials = sorted(trials + others, key=lambda trial: (users.index(trial["user"]), rankers.index(trial["ranker"]), trial["fold"], trial["seed"]))
    source = config["data"]["source"]
    found = {"machine": tables.machine_of(manifest), "source": source if source.startswith("synth:") else DATA[name],
             "rounds": config["protocol"]["rounds"], "trials": trials}
    FILES.mkdir(parents=True, exist_ok=True)
    tables.write(FILES / f"{name}.json", found)


def read(name):
    path = FILES / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def cells():
    """(data, user) and the trials of each ranker there, by fold and seed."""
    for name in DATA:
        found = read(name)
        if found is None or name in APART:
            continue
        by_user = {}
        for trial in found["trials"]:
            by_user.setdefault(trial["user"], {}).setdefault(trial["ranker"], {})[trial["fold"], trial["seed"]] = trial
        for user, rankers in by_user.items():
            yield name, user, rankers


def difference_of(rankers, other, figure):
    pairs = [trial[figure] - rankers[other][key][figure] for key, trial in rankers[RECOMMENDED].items() if key in rankers[other]]
    return statistics.fmean(pairs), tables.half_width(pairs)


def quality_table(figure, digits):
    """What clickgp came to in each cell, and how far it is ahead of each other ranker."""
    others = list(dict.fromkeys(ranker for _, _, rankers in cells() for ranker in rankers if ranker != RECOMMENDED))
    random_at = 0 if figure == "offline" else 1
    rows = []
    for data, user, rankers in cells():
        own = [trial[figure] for trial in rankers[RECOMMENDED].values()]
        chance = statistics.fmean(trial["random"][random_at] for trial in rankers[RECOMMENDED].values())
        fields = []
        for other in others:
            if other not in rankers:
                fields.append("–")
                continue
            mean, half = difference_of(rankers, other, figure)
            mark = "**" if mean - half > 0 else "" if mean + half >= 0 else "_"
            fields.append(f"{mark}{papers.number(mean, digits, sign=True)} ± {papers.number(half, digits)}{mark}")
        rows.append([DATA[data], user, str(len(own)), papers.number(chance, digits), f"{papers.number(statistics.fmean(own), digits)} ± {papers.number(tables.half_width(own), digits)}",
                     *fields])
    return tables.markdown(["data", "user", "trials", "random", RECOMMENDED, *(f"− {other}" for other in others)], rows)


def certainty_table():
    """Certain orders, the share of them that was wrong, and of what clickgp states the share that was wrong by class."""
    rows = []
    classes = None
    for data, user, rankers in cells():
        fields = []
        for ranker in ("pairrank", RECOMMENDED):
            trials = list(rankers.get(ranker, {}).values())
            certain = [trial["certain"] for trial in trials if trial["certain"] is not None]
            wrong, of = (sum(trial["wrong"][at] for trial in trials) for at in (0, 1))
            fields.append(f"{100 * statistics.fmean(certain):.1f} %, {100 * wrong / of:.1f} %" if certain and of
                          else f"{100 * statistics.fmean(certain):.1f} %, –" if certain else "–")
        stated = [trial["stated"] for trial in rankers[RECOMMENDED].values() if trial["stated"]]
        classes = [one[0] for one in stated[0]]
        for at in range(len(classes)):
            wrong, of = (sum(one[at][part] for one in stated) for part in (1, 2))
            fields.append(f"{100 * wrong / of:.1f}" if of >= 50 else "–")
        changes = sum(trial["changes"] for trial in rankers[RECOMMENDED].values())
        rows.append([DATA[data], user, *fields, f"{changes} in {len(rankers[RECOMMENDED])} trials"])
    ends = [f"{100 * begin:g} to {100 * end:g} %" for begin, end in zip(classes, [*classes[1:], 1.0])]
    return tables.markdown(["data", "user", "pairrank", RECOMMENDED, *ends, "changes noticed"], rows)


def cost_table():
    """Milliseconds a round: the median of the trials, and over that of pairrank."""
    by_ranker = {}
    for trial in read("cost")["trials"]:
        by_ranker.setdefault(trial["ranker"], []).append(trial["ms"])
    unit = statistics.median(by_ranker["pairrank"])
    rows = [[f"`{ranker}`", f"{statistics.median(found):.2f}", f"{statistics.median(found) / unit:.2f}"]
            for ranker, found in by_ranker.items()]
    return tables.markdown(["ranker", "ms", "over `pairrank`"], rows)


def changing_table():
    """Mean NDCG@10 of the lists in spans of rounds, where users change at half time, and where they do not."""
    found = read("changing")
    spans = [(300, RECOVERED_BY), (900, CHANGE_ROUND), (CHANGE_ROUND, 1100), (1300, CHANGE_ROUND + RECOVERED_BY), (1900, 2000)]
    rows = []
    by, changes = {}, {}
    for trial in found["trials"]:
        by.setdefault((trial["user"], trial["ranker"]), []).append(dict(trial["lists"]))
        changes.setdefault((trial["user"], trial["ranker"]), []).append(trial.get("changes"))
    for (user, ranker), trials in by.items():
        fields = []
        for begin, end in spans:
            values = [(lists[end] - lists[begin]) / (end - begin) for lists in trials]
            fields.append(f"{papers.number(statistics.fmean(values), 3)} ± {papers.number(tables.half_width(values), 3)}")
        noticed = changes[user, ranker]
        rows.append([user, f"`{ranker}`", *fields, "–" if None in noticed else f"{sum(noticed)} in {len(noticed)} trials"])
    return tables.markdown(["user", "ranker", *(f"rounds {begin + 1:,}–{end:,}" for begin, end in spans), "changes noticed"], rows)


TABLES = {"offline": lambda: quality_table("offline", 3), "online": lambda: quality_table("online", 0), "certainty": certainty_table,
          "cost": cost_table, "changing": changing_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", nargs=2, required=True, metavar=("NAME", "OUT"))
    parser.add_argument("--seeds", action="store_true")
    arguments = parser.parse_args()
    add(arguments.add[0], pathlib.Path(arguments.add[1]), arguments.seeds)


if __name__ == "__main__":
    main()
