"""The tables of docs/PAPERS.md, what became of the papers' claims, from the files in docs/evidence/papers.

bench/papers.py --add STUDY DATA OUT [--program OLRANK]

condenses the trials of OUT, an experiment of configs/papers/STUDY.toml on DATA, into docs/evidence/papers/STUDY-DATA.json, with
machine and date; with --program also its figures. bench/pages.py writes the tables into the pages.
CLAIMS below says which rankers a claim compares; the verdict follows from the rule that the page states."""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile

FILES = pathlib.Path("docs/evidence/papers")
DATA = {"mq2008": "MQ2008", "mq2008-position": "MQ2008, position bias", "clueweb09": "ClueWeb09", "mslr-like": "mslr-like",
        "mslr-like-long": "mslr-like, long lists"}
USERS = {"perfect": "P", "navigational": "N", "informational": "I"}
# Of so many trials: the 97.5 % point of Student's t. Numbers between take that of fewer, which is wider.
T_97_5 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262, 20: 2.093}

WWW21, WWW22, SIGIR22 = "PairRank, WWW 2021", "olRankNet, WWW 2022", "P², SIGIR 2022"
BETTER, SAME, BELOW = "better", "same", "below"
SAME_WITHIN = {"offline": 0.01, "cndcg": 10.0}  # differences that count as none
DIGITS = {"offline": 4, "cndcg": 1, "certain": 3, "cosine": 3, "slope": 2, "regret": 0, "size_10": 2, "ms": 2}

# Number, where it is printed, the claim, study, figure, how, ranker, and the ranker or point that it is compared with.
OFFLINE, ONLINE = "experiments, offline NDCG@10", "experiments, cumulative online NDCG@10"
CLAIMS = [
    (WWW21, OFFLINE, "PairRank learns a better ranker than PDGD", "linear", "offline", BETTER, "pairrank", "pdgd"),
    (WWW21, OFFLINE, "… than DBGD", "linear", "offline", BETTER, "pairrank", "dbgd"),
    (WWW21, OFFLINE, "… than MGD", "linear", "offline", BETTER, "pairrank", "mgd"),
    (WWW21, OFFLINE, "… than MGD with probabilistic multileaving", "linear", "offline", BETTER, "pairrank", "mgd-probabilistic"),
    (WWW21, OFFLINE, "… than ε-greedy RankNet", "linear", "offline", BETTER, "pairrank", "ranknet-epsilon"),
    (WWW21, OFFLINE, "PDGD learns a better ranker than DBGD", "linear", "offline", BETTER, "pdgd", "dbgd"),
    (WWW21, OFFLINE, "MGD learns a better ranker than DBGD", "linear", "offline", BETTER, "mgd", "dbgd"),
    (WWW21, ONLINE, "PairRank shows better lists on the way than PDGD", "linear", "cndcg", BETTER, "pairrank", "pdgd"),
    (WWW21, ONLINE, "… than DBGD", "linear", "cndcg", BETTER, "pairrank", "dbgd"),
    (WWW21, ONLINE, "… than MGD", "linear", "cndcg", BETTER, "pairrank", "mgd"),
    (WWW21, ONLINE, "… than ε-greedy RankNet", "linear", "cndcg", BETTER, "pairrank", "ranknet-epsilon"),
    (WWW21, "variants", "Orders that keep all certain ones show better lists than shuffled blocks", "linear", "cndcg", BETTER,
     "pairrank", "pairrank-blocks"),
    (WWW21, "authors' code", "The diagonal of the covariance learns as well as all of it", "linear", "offline", SAME,
     "pairrank-diagonal", "pairrank"),
    (WWW21, "experiments, offline model", "PairRank ends closer to the model of all labels than PDGD (cosine)", "linear", "cosine",
     BETTER, "pairrank", "pdgd"),
    (WWW21, "experiments, certainty", "The share of certain orders grows with the rounds", "linear", "certain", "rises", "pairrank", None),
    (WWW21, "experiments, blocks", "Blocks are smaller at rank 1 than at rank 10", "linear", "size_10", "top", "pairrank", None),
    (WWW21, "theorem 1", "Regret grows slower than the rounds: its slope on log axes is below 1", "linear", "slope", BELOW, "pairrank", 1.0),
    (WWW21, "theorem 1", "… and not faster than log² T, whose slope is below 0.32 from 500 rounds on", "linear", "slope", BELOW,
     "pairrank", 0.32),
    (WWW22, OFFLINE, "olRankNet learns a better ranker than PairRank", "networks", "offline", BETTER, "olranknet-full", "pairrank"),
    (WWW22, ONLINE, "olRankNet shows better lists on the way than PairRank", "networks", "cndcg", BETTER, "olranknet-full", "pairrank"),
    (WWW22, OFFLINE, "olRankNet learns a better ranker than PDGD with a network", "networks", "offline", BETTER, "olranknet-full",
     "pdgd-network"),
    (WWW22, ONLINE, "olRankNet shows better lists on the way than PDGD with a network", "networks", "cndcg", BETTER,
     "olranknet-full", "pdgd-network"),
    (WWW22, OFFLINE, "olRankNet learns a better ranker than ε-greedy RankNet with a network", "networks", "offline", BETTER,
     "olranknet-full", "ranknet-network"),
    (WWW22, OFFLINE, "olRankNet learns a better ranker than DBGD with a network", "networks", "offline", BETTER, "olranknet-full",
     "dbgd-network"),
    (WWW22, OFFLINE, "olLambdaRank learns a better ranker than olRankNet", "networks", "offline", BETTER, "ollambdarank-diagonal",
     "olranknet-diagonal"),
    (WWW22, ONLINE, "olLambdaRank shows better lists on the way than olRankNet", "networks", "cndcg", BETTER,
     "ollambdarank-diagonal", "olranknet-diagonal"),
    (WWW22, "table, m = 16", "The full covariance learns a better ranker than the diagonal (printed: +.0122)", "networks", "offline",
     BETTER, "olranknet-full", "olranknet-diagonal"),
    (WWW22, "experiments, certainty", "The share of certain orders grows with the rounds", "networks", "certain", "rises",
     "olranknet-full", None),
    (WWW22, "theorem", "Regret grows slower than the rounds: its slope on log axes is below 1", "networks", "slope", BELOW,
     "olranknet-full", 1.0),
    (WWW22, "theorem", "… and not faster than log² T, whose slope is below 0.43 from 100 rounds on", "networks", "slope", BELOW,
     "olranknet-full", 0.43),
    (SIGIR22, OFFLINE, "P²NeurRank learns a better ranker than olRankNet with a diagonal", "networks", "offline", BETTER,
     "p2neurrank-2", "olranknet-diagonal"),
    (SIGIR22, ONLINE, "P²NeurRank shows better lists on the way than olRankNet with a diagonal", "networks", "cndcg", BETTER,
     "p2neurrank-2", "olranknet-diagonal"),
    (SIGIR22, OFFLINE, "P²LinRank with two members learns as good a ranker as PairRank", "linear", "offline", SAME, "p2linrank-2",
     "pairrank"),
    (SIGIR22, ONLINE, "P²LinRank with two members shows better lists on the way than PairRank", "linear", "cndcg", BETTER,
     "p2linrank-2", "pairrank"),
    (SIGIR22, "table of N and ν²", "Two members learn as good a ranker as ten (ν² = 0.1)", "ensembles", "offline", SAME, "N2-noise0.1",
     "N10-noise0.1"),
    (SIGIR22, "table of N and ν²", "Two members show better lists on the way than ten (ν² = 0.1)", "ensembles", "cndcg", BETTER,
     "N2-noise0.1", "N10-noise0.1"),
    (SIGIR22, "table of N and ν²", "Noise of 0.1 and of 0.01 learn equally good rankers (N = 2)", "ensembles", "offline", SAME,
     "N2-noise0.1", "N2-noise0.01"),
    (SIGIR22, "table of sizes", "Two hidden layers of 100 learn a better ranker than two of 16 (P², N = 2)", "sizes", "offline",
     BETTER, "p2neurrank-2-100x100", "p2neurrank-2-16x16"),
    (SIGIR22, "table of sizes", "P² learns a better ranker than the diagonal at two layers of 100", "sizes", "offline", BETTER,
     "p2neurrank-2-100x100", "olranknet-diagonal-100x100"),
    (SIGIR22, "complexity", "A round of two members costs less than one of the full covariance, m = 100", "time", "ms", "cheaper",
     "N2-100", "full-100"),
]
# What the papers leave open, or we chose: the same comparisons without a claim.
QUESTIONS = [
    ("`observe_at`", "After training, as in the papers, against before it: full covariance, offline", "observe-at", "offline",
     "full-after", "full-before"),
    ("`observe_at`", "The same, online", "observe-at", "cndcg", "full-after", "full-before"),
    ("`observe_at`", "The same, diagonal, offline", "observe-at", "offline", "diagonal-after", "diagonal-before"),
    ("`observe_at`", "The same, diagonal, online", "observe-at", "cndcg", "diagonal-after", "diagonal-before"),
    ("`restart`", "From θ₀, as in the analysis, against warm, offline", "restart", "offline", "first", "warm"),
    ("`restart`", "The same, online", "restart", "cndcg", "first", "warm"),
    ("`restart`", "From new parameters, as in the authors' code, against warm, offline", "restart", "offline", "fresh", "warm"),
    ("`restart`", "The same, online", "restart", "cndcg", "fresh", "warm"),
    ("`restart`, `reference`", "From new parameters against θ₀, offline", "restart-reference", "offline", "fresh", "first"),
    ("`restart`, `reference`", "The same, online", "restart-reference", "cndcg", "fresh", "first"),
    ("`prior_noise`", "A perturbed prior against none, N = 2, offline", "ensembles", "offline", "N2-noise0.1-prior", "N2-noise0.1"),
    ("`prior_noise`", "The same, online", "ensembles", "cndcg", "N2-noise0.1-prior", "N2-noise0.1"),
    ("`parameterisation`", "`standard`, Nesterov and λ = 20 against the papers' network, offline", "networks", "offline",
     "olranknet-standard", "olranknet-full"),
    ("`parameterisation`", "The same, online", "networks", "cndcg", "olranknet-standard", "olranknet-full"),
    ("exploration", "ε-greedy against greedy RankNet, linear, offline", "linear", "offline", "ranknet-epsilon", "ranknet-greedy"),
    ("exploration", "The same, online", "linear", "cndcg", "ranknet-epsilon", "ranknet-greedy"),
]
FIGURES = {
    "linear": ("offline-ndcg", "cosine", "certain-share", "block-size-by-rank-5000", "regret"),
    "networks": ("offline-ndcg", "certain-share", "regret"),
    "ensembles": ("offline-ndcg",), "sizes": ("offline-ndcg",), "observe-at": ("offline-ndcg",), "restart": ("offline-ndcg",),
    "restart-reference": ("offline-ndcg",), "steps": ("offline-ndcg",), "confidence": ("online-ndcg",),
}


def number(value, digits, sign=False):
    text = f"{value:+,.{digits}f}" if sign else f"{value:,.{digits}f}"
    return text.replace("-", "−").replace("0.", ".", 1) if abs(value) < 1 else text.replace("-", "−")


def half_width(values):
    point = T_97_5[max(count for count in T_97_5 if count <= len(values))]
    return point * statistics.stdev(values) / len(values) ** 0.5


def read(study):
    """The files of a study, by data."""
    found = {data: FILES / f"{study}-{data}.json" for data in DATA}
    return {data: json.loads(path.read_text()) for data, path in found.items() if path.exists()}


def trials_by(found):
    trials = {}
    for trial in found["trials"]:
        trials.setdefault((trial["user"], trial["ranker"]), {})[trial["fold"], trial["seed"]] = trial
    return trials


def differences(trials, user, figure, first, second):
    """Of trials with the same fold and seed."""
    a, b = trials.get((user, first), {}), trials.get((user, second), {})
    both = [(a[key][figure], b[key][figure]) for key in a if key in b]
    return [x - y for x, y in both if x is not None and y is not None]


def judged(how, values, figure):
    """The mean with its interval, and whether it agrees with the claim: True, False, or None if the interval leaves both."""
    mean, half = statistics.fmean(values), half_width(values)
    text = f"{number(mean, DIGITS[figure], sign=True)} ± {number(half, DIGITS[figure])}"
    if how == SAME:
        margin = SAME_WITHIN[figure]
        inside = True if abs(mean) + half <= margin else None
        return text, False if abs(mean) - half > margin else inside
    return text, None if abs(mean) <= half else mean > 0


def values_of(trials, user, claim):
    _, _, _, _, figure, how, ranker, other = claim
    own = trials.get((user, ranker), {}).values()
    if how == "rises":
        return [trial["certain"] - trial["certain_first"] for trial in own if trial["certain"] is not None]
    if how == "top":
        return [trial["sizes"]["10"] - trial["sizes"]["1"] for trial in own if trial["sizes"]["10"] is not None]
    if how == BELOW:
        return [other - trial["slope"] for trial in own if trial["slope"] is not None]
    if how == "cheaper":
        return [-value for value in differences(trials, user, figure, ranker, other)]
    return differences(trials, user, figure, ranker, other)


def verdict_of(agreements, how=BETTER):
    if not agreements:
        return "not run yet"
    for outcome, word in ((True, "reproduced"), (False, "contradicted")):
        if all(one is outcome for one in agreements):
            return f"**{word}**"
    if all(one is None for one in agreements):
        return "not decided" if how == SAME else "no difference found"
    parts = [f"{sum(one is outcome for one in agreements)} {word}"
             for outcome, word in ((True, "reproduced"), (False, "contradicted"), (None, "open")) if outcome in agreements]
    return f"mixed: {', '.join(parts)}"


def compared(study, values_in, how, figure):
    """The text of all data and users, and whether each agrees."""
    texts, agreements = [], []
    for data, found in read(study).items():
        trials = trials_by(found)
        of_users = []
        for user, letter in USERS.items():
            values = values_in(trials, user)
            if len(values) == 1:  # of one trial: times
                of_users.append(f"{letter} {number(values[0], DIGITS[figure], sign=True)}")
                agreements.append(values[0] > 0)
            elif values:
                text, agrees = judged(how, values, figure)
                agreements.append(agrees)
                of_users.append(f"{letter} {text}" + {True: "", False: " ✗", None: " ○"}[agrees])
        if of_users:
            texts.append(f"{DATA[data]}: {', '.join(of_users)}")
    return "<br>".join(texts) or "–", agreements


def markdown(header, rows):
    return "".join("| " + " | ".join(fields) + " |\n" for fields in [header, ["---"] * len(header), *rows])


def claims_table():
    rows = []
    for place, claim in enumerate(CLAIMS, start=1):
        text, agreements = compared(claim[3], lambda trials, user: values_of(trials, user, claim), claim[5], claim[4])
        rows.append([str(place), claim[2], f"{claim[0]}: {claim[1]}", text, verdict_of(agreements, claim[5])])
    return markdown(["", "claim", "where it is printed", "our difference", "verdict"], rows)


def verdicts_table():
    counts = {}
    for claim in CLAIMS:
        _, agreements = compared(claim[3], lambda trials, user: values_of(trials, user, claim), claim[5], claim[4])
        verdict = verdict_of(agreements, claim[5]).replace("*", "").split(":")[0]
        counts.setdefault(claim[0], {}).setdefault(verdict, 0)
        counts[claim[0]][verdict] += 1
    kinds = ["reproduced", "contradicted", "mixed", "no difference found", "not decided", "not run yet"]
    rows = [[paper, *(str(found.get(kind, 0)) for kind in kinds)] for paper, found in counts.items()]
    return markdown(["paper", *kinds], rows)


def questions_table():
    rows = []
    for key, question, study, figure, first, second in QUESTIONS:
        text, _ = compared(study, lambda trials, user: differences(trials, user, figure, first, second), BETTER, figure)
        rows.append([key, question, text])
    return markdown(["setting", "question", "difference"], rows)


def results_table(study):
    """What every ranker of a study came to."""
    rows = []
    for data, found in read(study).items():
        for (user, ranker), trials in trials_by(found).items():
            fields = []
            for figure in ("offline", "cndcg", "certain", "slope"):
                values = [trial[figure] for trial in trials.values()]
                fields.append("–" if None in values else
                              number(statistics.fmean(values), DIGITS[figure]) +
                              (f" ± {number(half_width(values), DIGITS[figure])}" if len(values) > 1 else ""))
            rows.append([DATA[data], user, f"`{ranker}`", str(len(trials)), *fields])
    return markdown(["data", "user", "ranker", "trials", "offline NDCG@10", "online cNDCG@10", "certain", "slope of regret"], rows)


def against_table(study, reference_of):
    """Differences of each ranker from its reference, offline and online."""
    rows = []
    for data, found in read(study).items():
        trials = trials_by(found)
        for user, ranker in trials:
            reference = reference_of(ranker)
            if reference is None or reference == ranker:
                continue
            fields = [judged(BETTER, differences(trials, user, figure, ranker, reference), figure)[0]
                      for figure in ("offline", "cndcg", "cndcg_early")]
            rows.append([DATA[data], user, f"`{ranker}` − `{reference}`", *fields])
    return markdown(["data", "user", "difference", "offline NDCG@10", "online cNDCG@10", "online, first 100 rounds"], rows)


def time_table(study):
    rows = []
    for data, found in read(study).items():
        for (_, ranker), trials in trials_by(found).items():
            trial = next(iter(trials.values()))
            parts = ", ".join(f"{stage} {number(value, 2)}" for stage, value in trial["stages"].items() if value >= 0.005)
            rows.append([DATA[data], f"`{ranker}`", f"{number(trial['ms'], 2)} ms", parts])
    return markdown(["data", "ranker", "a round", "of which"], rows)


CAPTIONS = {"offline-ndcg": "offline NDCG@10 by rounds", "online-ndcg": "mean NDCG@10 of the lists shown so far",
            "cosine": "cosine to the model of all labels", "certain-share": "share of certain orders",
            "block-size-by-rank-5000": "size of the block at a rank, after 5,000 rounds", "regret": "pairs in the wrong order, summed"}


def figures_table():
    lines = []
    for study, names in FIGURES.items():
        for data, title in DATA.items():
            for name in names:
                if not (FILES / f"{study}-{data}-{name}.svg").exists():
                    continue
                stem, caption = f"evidence/papers/{study}-{data}-{name}", f"`{study}`, {title}: {CAPTIONS[name]}"
                lines.append(f'{caption}\n\n<picture><source media="(prefers-color-scheme: dark)" srcset="{stem}-dark.svg">'
                             f'<img src="{stem}.svg" alt="{caption.replace("`", "")}"></picture>\n')
    return "\n".join(lines)


def sources_table():
    rows = []
    for path in sorted(FILES.glob("*.json")):
        found = json.loads(path.read_text())
        machine = found["machine"]
        rows.append([f"[{path.stem}](evidence/papers/{path.name})", f"`configs/papers/{found['study']}.toml`, {found['source']}",
                     f"{found['rounds']:,}", f"{len(found['folds'])} × {len(found['seeds'])}",
                     "all" if len(found["trials"]) == found["planned"] else f"{len(found['trials'])} of {found['planned']}",
                     f"{machine['date']}, {machine['processor']}, {machine['cores']} cores"])
    return markdown(["file", "experiment", "rounds", "folds × seeds", "trials", "run"], rows)


DIGITS["cndcg_early"] = 1
SAME_WITHIN["cndcg_early"] = 2.0
TABLES = {
    "claims": claims_table, "verdicts": verdicts_table, "questions": questions_table, "sources": sources_table, "figures": figures_table,
    "linear": lambda: results_table("linear"), "networks": lambda: results_table("networks"),
    "ensembles": lambda: results_table("ensembles"), "sizes": lambda: results_table("sizes"), "time": lambda: time_table("time"),
    "steps": lambda: against_table("steps", lambda ranker: ranker.split("-")[0] + "-20"),
    "confidence": lambda: against_table("confidence", lambda ranker: ranker.split("-")[0] + "-none"),
}


def slope_of(curve, key):
    """The exponent b of y ∝ t^b over the last nine tenths of the rounds, by least squares on log axes."""
    points = [(math.log(point["round"]), math.log(point["online"][key])) for point in curve
              if point["round"] >= curve[-1]["round"] / 10 and point["online"][key] > 0]
    if len(points) < 3:
        return None
    x_mean, y_mean = (statistics.fmean(values) for values in zip(*points))
    return sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)


def trial_of(file):
    summary = json.loads(file.read_text())
    curve = [json.loads(line) for line in (file.parent / "curve.jsonl").read_text().splitlines()]
    curve = [point for point in curve if point["round"] > 0]
    last, rounds = curve[-1], summary["rounds"]
    stages = {stage: round(1e3 * seconds / rounds, 3) for stage, seconds in summary["seconds_by_stage"].items() if stage != "eval"}
    slope = slope_of(curve, "regret")
    return {"user": summary["clicks"], "ranker": summary["ranker"], "fold": summary["fold"], "seed": summary["seed"],
            "offline": round(last["offline"]["ndcg@10"], 5), "cndcg": round(last["online"]["cndcg@10"], 3),
            "cndcg_early": round(curve[0]["online"]["cndcg@10"], 3), "regret": last["online"]["regret"],
            "slope": None if slope is None else round(slope, 4), "certain": last["certain_share"],
            "certain_first": curve[0]["certain_share"], "sizes": last["block_size"], "cosine": last["cosine"],
            "ms": round(sum(stages.values()), 3), "stages": stages}


def add(study, data, out, program):
    manifest = json.loads((out / "manifest.json").read_text())
    config = manifest["config"]
    trials = [trial_of(file) for file in sorted(out.glob("trials/*/*/fold*/seed*/summary.json"))]
    rankers = [ranker["name"] for ranker in config["ranker"]]
    users = list(USERS)
    trials.sort(key=lambda trial: (users.index(trial["user"]), rankers.index(trial["ranker"]), trial["fold"], trial["seed"]))
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    machine = {"processor": processor, "cores": len(os.sched_getaffinity(0)), "date": manifest["started"][:10]}
    origin = config["data"]["source"]
    found = {"machine": machine, "study": study, "source": origin if origin.startswith("synth:") else DATA[data.split("-")[0]],
             "rounds": config["protocol"]["rounds"], "seeds": manifest["seeds"], "folds": config["data"]["folds"],
             "planned": len(rankers) * len(config["clicks"]["models"]) * len(config["data"]["folds"]) * len(manifest["seeds"]),
             "trials": []}
    lines = ",\n".join(json.dumps(trial) for trial in trials)
    FILES.mkdir(exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False).replace('"trials": []', f'"trials": [\n{lines}\n]')
    (FILES / f"{study}-{data}.json").write_text(text + "\n")
    if program is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder) / "figures"
        subprocess.run([program, "report", str(out), "--figures", str(figures), "--out", f"{folder}/report", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        for name in FIGURES.get(study, ()):
            for ground in ("", "-dark"):
                figure = figures / f"informational-{name}{ground}.svg"
                if figure.exists():
                    (FILES / f"{study}-{data}-{name}{ground}.svg").write_text(figure.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", nargs=3, required=True, metavar=("STUDY", "DATA", "OUT"))
    parser.add_argument("--program")
    arguments = parser.parse_args()
    study, data, out = arguments.add
    add(study, data, pathlib.Path(out), arguments.program)


if __name__ == "__main__":
    main()
