"""The tables of docs/CHOOSING.md from docs/evidence/choosing.json, and its records from experiments.

evidence/choosing.py --add NAME OUT [--seeds]  takes the trials of an experiment of configs/choosing/NAME.toml; those of
                                               other rankers and users stay, and with --seeds those of other seeds, too

Differences are of trials with the same fold and seed, ± half the width of their 95 % t interval."""

import argparse
import json
import pathlib
import statistics

import papers
import records
import tables

DATA = {"mq2008": "MQ2008, five folds", "clueweb09": "ClueWeb09, five folds", "mslr-sample": "MSLR, 90 queries",
        "mslr-like": "generated, nonlinear, many repeats", "yahoo-like": "generated like Yahoo, many repeats",
        "mslr-like-few-repeats": "generated, linear, few repeats", "raw": "generated, raw heavy tails", "changing": "MQ2008, changing users", "cost": "", "floor": "MQ2008, five folds"}
APART = ("changing", "cost", "floor")  # data without rows in the tables of quality
RECOMMENDED = "clickgp"
EARLY_ROUND = 100
CHANGE_ROUND, RECOVERED_BY = 1000, 500


def trial_of(file):
    summary, curve = json.loads(file.read_text()), tables.curve_of(file)
    last = curve[-1]
    wrong = [(one["share"] * one["of"], one["of"]) for one in (point["false_certain"] for point in curve if "false_certain" in point)]
    stated = [[one["from"], round(sum(at["of"] and at["wrong"] * at["of"] for at in of_class)), sum(at["of"] for at in of_class)]
              for of_class in zip(*(point["stated"] for point in curve if "stated" in point)) for one in of_class[:1]]
    certain = [point["certain_share"] for point in curve if point["certain_share"] is not None]
    seconds = sum(value for stage, value in summary["seconds_by_stage"].items() if stage != "eval")
    return {"user": summary["clicks"], "ranker": summary["ranker"], "fold": summary["fold"], "seed": summary["seed"],
            "offline": round(last["offline"]["ndcg@10"], 5), "online": round(last["online"]["cndcg@10"], 3),
            "random": [round(last["random"]["offline"]["ndcg@10"], 5), round(last["random"]["online"]["cndcg@10"], 3)],
            "below_random": sum(point["offline"]["ndcg@10"] < point["random"]["offline"]["ndcg@10"] for point in curve if point["round"] >= EARLY_ROUND),
            "certain": round(statistics.fmean(certain), 5) if certain else None,
            "wrong": [round(sum(one for one, _ in wrong)), sum(of for _, of in wrong)], "stated": stated,
            "lists": [[point["round"], round(point["online"]["ndcg@10"] * point["round"], 4)] for point in curve],
            **({"changes": round(last["changes"])} if "changes" in last else {}),
            "ms": round(1e3 * seconds / summary["rounds"], 3)}


def add(name, out, keep_seeds):
    manifest = json.loads((out / "manifest.json").read_text())
    config = manifest["config"]
    trials = [trial_of(file) for file in tables.summaries_of(out)]
    users, rankers, seeds = config["clicks"]["models"], [ranker["name"] for ranker in config["ranker"]], {trial["seed"] for trial in trials}
    # Times of another run do not compare.
    before = [] if name == "cost" else (records.read("choosing", name) or {"trials": []})["trials"]
    others = [trial for trial in before if trial["ranker"] not in rankers or trial["user"] not in users or (keep_seeds and trial["seed"] not in seeds)]
    if name != "changing":
        for trial in trials:
            del trial["lists"]
    users, rankers = (list(dict.fromkeys([trial[key] for trial in before] + own)) for key, own in (("user", users), ("ranker", rankers)))
    source = config["data"]["source"]
    records.write("choosing", name, {
        "machine": tables.machine_of(manifest), "source": source if source.startswith("synth:") else DATA[name],
        "rounds": config["protocol"]["rounds"], "trials": tables.by_plan(trials + others, users, rankers)})


def cells():
    """(data, user) and the trials of each ranker there, by fold and seed."""
    for name in DATA:
        if name in APART or (found := records.read("choosing", name)) is None:
            continue
        by_user = {}
        for (user, ranker), trials in papers.trials_by(found).items():
            by_user.setdefault(user, {})[ranker] = trials
        for user, rankers in by_user.items():
            yield name, user, rankers


def quality_table(figure, digits):
    """Shows what clickgp came to in each cell, and how far it is ahead of each other ranker."""
    others = list(dict.fromkeys(ranker for _, _, rankers in cells() for ranker in rankers if ranker != RECOMMENDED))
    rows = []
    for data, user, rankers in cells():
        own = rankers[RECOMMENDED]
        chance = statistics.fmean(trial["random"][figure == "online"] for trial in own.values())
        fields = []
        for other in others:
            pairs = papers.paired(own, rankers.get(other, {}), figure)
            mean, half = (statistics.fmean(pairs), tables.half_width(pairs)) if pairs else (0, 0)
            mark = "**" if mean - half > 0 else "" if mean + half >= 0 else "_"
            fields.append(f"{mark}{papers.estimate(pairs, digits, sign=True)}{mark}" if pairs else "–")
        rows.append([DATA[data], user, str(len(own)), papers.number(chance, digits), papers.estimate([trial[figure] for trial in own.values()], digits), *fields])
    return tables.markdown(["data", "user", "trials", "random", RECOMMENDED, *(f"− {other}" for other in others)], rows)


def certainty_table():
    """Certain orders, the share of them that was wrong, and of what clickgp states the share that was wrong by class."""
    rows, begins = [], []
    for data, user, rankers in cells():
        fields = []
        for ranker in ("pairrank", RECOMMENDED):
            trials = rankers.get(ranker, {}).values()
            certain = [trial["certain"] for trial in trials if trial["certain"] is not None]
            wrong, of = (sum(trial["wrong"][at] for trial in trials) for at in (0, 1))
            fields.append(f"{100 * statistics.fmean(certain):.1f} %, {f'{100 * wrong / of:.1f} %' if of else '–'}" if certain else "–")
        stated = [trial["stated"] for trial in rankers[RECOMMENDED].values() if trial["stated"]]
        begins = [one[0] for one in stated[0]]
        for of_class in zip(*stated):
            wrong, of = (sum(one[part] for one in of_class) for part in (1, 2))
            fields.append(f"{100 * wrong / of:.1f}" if of >= 50 else "–")
        changes = sum(trial["changes"] for trial in rankers[RECOMMENDED].values())
        rows.append([DATA[data], user, *fields, f"{changes} in {len(rankers[RECOMMENDED])} trials"])
    ends = [f"{100 * begin:g} to {100 * end:g} %" for begin, end in zip(begins, [*begins[1:], 1.0])]
    return tables.markdown(["data", "user", "pairrank", RECOMMENDED, *ends, "changes noticed"], rows)


def cost_table():
    """Milliseconds a round: the median of the trials, and over that of pairrank."""
    by_ranker = {}
    for trial in records.read("choosing", "cost")["trials"]:
        by_ranker.setdefault(trial["ranker"], []).append(trial["ms"])
    medians = {ranker: statistics.median(found) for ranker, found in by_ranker.items()}
    return tables.markdown(["ranker", "ms", "over `pairrank`"],
                           [[f"`{ranker}`", f"{median:.2f}", f"{median / medians['pairrank']:.2f}"] for ranker, median in medians.items()])


def changing_table():
    """Mean NDCG@10 of the lists in spans of rounds, where users change at half time, and where they do not."""
    spans = [(300, RECOVERED_BY), (900, CHANGE_ROUND), (CHANGE_ROUND, 1100), (1300, CHANGE_ROUND + RECOVERED_BY), (1900, 2000)]
    rows = []
    for (user, ranker), own in papers.trials_by(records.read("choosing", "changing")).items():
        lists = [dict(trial["lists"]) for trial in own.values()]
        noticed = [trial.get("changes") for trial in own.values()]
        rows.append([user, f"`{ranker}`", *(papers.estimate([(one[end] - one[begin]) / (end - begin) for one in lists], 3) for begin, end in spans),
                     "–" if None in noticed else f"{sum(noticed)} in {len(noticed)} trials"])
    return tables.markdown(["user", "ranker", *(f"rounds {begin + 1:,}–{end:,}" for begin, end in spans), "changes noticed"], rows)


def floor_table():
    """Returns what a floor of exploration costs: lists and model, and how far the lists are ahead of those without one."""
    trials = papers.trials_by(records.read("choosing", "floor"))
    rows = []
    for (user, ranker), own in trials.items():
        online = [trial["online"] for trial in own.values()]
        ahead = papers.paired(own, trials[user, RECOMMENDED], "online")
        share = 100 * statistics.fmean(ahead) / statistics.fmean(trial["online"] for trial in trials[user, RECOMMENDED].values())
        rows.append([user, f"`{ranker}`", papers.estimate(online, 0), "–" if ranker == RECOMMENDED else f"{papers.estimate(ahead, 0, sign=True)} ({papers.number(share, 1, True)} %)",
                     papers.estimate([trial["offline"] for trial in own.values()], 3)])
    return tables.markdown(["user", "ranker", "online", "ahead of no floor", "offline"], rows)


TABLES = {"offline": lambda: quality_table("offline", 3), "online": lambda: quality_table("online", 0), "certainty": certainty_table,
          "cost": cost_table, "changing": changing_table, "floor": floor_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", nargs=2, required=True, metavar=("NAME", "OUT"))
    parser.add_argument("--seeds", action="store_true")
    arguments = parser.parse_args()
    add(arguments.add[0], pathlib.Path(arguments.add[1]), arguments.seeds)


if __name__ == "__main__":
    main()
