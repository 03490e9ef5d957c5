"""The tables of docs/PAPERS.md and its pages of evidence, what became of the papers' claims, from docs/evidence/papers.json.

evidence/papers.py --add STUDY DATA OUT... [--program OLRANK]

condenses the trials of OUT, an experiment of configs/papers/STUDY.toml on DATA, into the record STUDY-DATA there, with machine
and date; with --program also its figures, into docs/evidence/papers. evidence/pages.py writes the tables into the pages. claims.json says which rankers a claim compares; the verdict follows from the rule that the page states."""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import tomllib
import typing

import records
from tables import by_plan, curve_of, half_width, machine_of, markdown, summaries_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURES = pathlib.Path("docs/evidence/papers")
DATA = {"mq2008": "MQ2008", "mq2008-position": "MQ2008, position bias", "clueweb09": "ClueWeb09", "mslr-like": "mslr-like",
        "mslr-like-long": "mslr-like, long lists", "realisable": "realisable"}
# About twelve queries in each test part: they have a table of their own and no part in the verdicts.
WITHOUT_VERDICT = "clueweb09"
USERS = {"perfect": "P", "navigational": "N", "informational": "I"}

WWW21, WWW22, SIGIR22 = PAPERS = "PairRank, WWW 2021", "olRankNet, WWW 2022", "P², SIGIR 2022"
BETTER, SAME, REACHES, BELOW, CHEAPER = "better", "same", "reaches", "below", "cheaper"
SAME_WITHIN = {"offline": 0.01, "cndcg": 10.0, "cndcg_early": 2.0, "size_1": 0.5}  # differences that count as none
MARKS = {True: "", False: " ✗", None: " ○"}  # behind a comparison, by whether it agrees
DIGITS = {"offline": 4, "cndcg": 1, "cndcg_early": 1, "certain": 3, "cosine": 3, "slope": 2, "slope_examined": 2, "size_1": 2, "size_10": 2, "blocks_first": 2,
          "ms": 2, "offline_first": 4, "middle_top": 2, "middle_bottom": 2}


class Claim(typing.NamedTuple):
    """`place` says where it is printed, and with which numbers; `other` is the ranker or the limit that `ranker` is compared with."""
    paper: str
    place: str
    text: str
    study: str
    figure: str
    how: str
    ranker: str
    other: str | float | None = None
    users: tuple[str, ...] = tuple(USERS)


def limit(power, first):
    """The largest slope on log axes that C log^power T has from round `first` on."""
    return power / math.log(first)


def claim_of(paper, place, text, study, figure, how, ranker, other=None, users=tuple(USERS)):
    """A claim of claims.json, where a limit is the power of the logarithm and the first round."""
    return Claim(dict(zip(("WWW21", "WWW22", "SIGIR22"), PAPERS))[paper], place, text, study, figure, how, ranker,
                 limit(*other) if isinstance(other, list) else other, tuple(users))


STATED = json.loads((pathlib.Path(__file__).parent / "claims.json").read_text())
# Claims keep their numbers, their places in this list; the tables are by paper.
CLAIMS = [claim_of(*one) for one in STATED["claims"]]
# The papers leave these open, or we chose them: they are compared without a claim.
QUESTIONS, FIGURES, CAPTIONS = STATED["questions"], STATED["figures"], STATED["captions"]


def number(value, digits, sign=False):
    text = f"{value:+,.{digits}f}" if sign else f"{value:,.{digits}f}"
    return text.replace("-", "−").replace("0.", ".", 1) if abs(value) < 1 else text.replace("-", "−")


def estimate(values, digits, sign=False):
    """The mean, with its interval where there is more than one."""
    mean = number(statistics.fmean(values), digits, sign)
    return f"{mean} ± {number(half_width(values), digits)}" if len(values) > 1 else mean


def read(study):
    """The records of a study, by data."""
    found = {data: records.read("papers", f"{study}-{data}") for data in DATA}
    return {data: record for data, record in found.items() if record}


def trials_by(found):
    trials = {}
    for trial in found["trials"]:
        trials.setdefault((trial["user"], trial["ranker"]), {})[trial["fold"], trial["seed"]] = trial
    return trials


def middle_ranks(trial):
    """The last rank with a size, and the one nearest to its half."""
    ranks = [int(rank) for rank, size in trial["sizes"].items() if size is not None]
    return max(ranks), min(ranks, key=lambda rank: abs(rank - max(ranks) / 2))


def figure_of(trial, figure):
    if figure in ("middle_top", "middle_bottom"):
        last, middle = middle_ranks(trial)
        return trial["sizes"][str(middle)] - trial["sizes"]["1" if figure == "middle_top" else str(last)]
    return trial["sizes"][figure.removeprefix("size_")] if figure.startswith("size_") else trial.get(figure)


def paired(first, second, figure):
    """Differences of two rankers' trials, or of two users', with the same fold and seed."""
    both = [(figure_of(first[key], figure), figure_of(second[key], figure)) for key in first if key in second]
    return [x - y for x, y in both if x is not None and y is not None]


def differences(trials, user, figure, first, second):
    return paired(trials.get((user, first), {}), trials.get((user, second), {}), figure)


def judged(how, values, figure):
    """The mean with its interval, and whether it agrees with the claim: True, False, or None if the interval leaves both."""
    mean, half = statistics.fmean(values), half_width(values)
    text = f"{number(mean, DIGITS[figure], sign=True)} ± {number(half, DIGITS[figure])}"
    if how in (SAME, "one"):
        margin = SAME_WITHIN[figure]
        inside = True if abs(mean) + half <= margin else None
        return text, False if abs(mean) - half > margin else inside
    over = mean + (SAME_WITHIN[figure] if how == REACHES else 0)
    return text, None if abs(over) <= half else over > 0


def values_of(trials, user, claim):
    own = trials.get((user, claim.ranker), {})
    if claim.how == "rises":
        return [trial["certain"] - trial["certain_first"] for trial in own.values() if trial["certain"] is not None]
    if claim.how == "top":
        return [trial["sizes"]["10"] - trial["sizes"]["1"] for trial in own.values() if trial["sizes"]["10"] is not None]
    if claim.how == "profile":
        return [figure_of(trial, claim.figure) for trial in own.values()]
    if claim.how == "one":
        return [trial["sizes"]["1"] - 1 for trial in own.values()]
    if claim.how == "navigational":  # larger and fewer blocks, a smaller share of certain orders
        sign = 1 if claim.figure.startswith("size_") else -1
        return [sign * value for value in paired(trials.get(("navigational", claim.ranker), {}), own, claim.figure)]
    if claim.how == BELOW:
        return [claim.other - trial[claim.figure] for trial in own.values() if trial.get(claim.figure) is not None]
    sign = -1 if claim.how == CHEAPER else 1
    return [sign * value for value in differences(trials, user, claim.figure, claim.ranker, claim.other)]


def verdict_of(agreements, how=BETTER):
    if not agreements:
        return "not run yet"
    for outcome, word in ((True, "reproduced"), (False, "contradicted")):
        if all(one is outcome for one in agreements):
            return f"**{word}**"
    if all(one is None for one in agreements):
        return "not decided" if how in (SAME, "one") else "no difference found"
    parts = [f"{sum(one is outcome for one in agreements)} {word}"
             for outcome, word in ((True, "reproduced"), (False, "contradicted"), (None, "open")) if outcome in agreements]
    return f"mixed: {', '.join(parts)}"


def compared(study, values_in, how, figure, users=tuple(USERS), only=None):
    """The text of all data and users, or of `only` one, and whether each agrees."""
    texts, agreements = [], []
    for data, found in read(study).items():
        wanted = data == only if only else data != WITHOUT_VERDICT
        if not wanted:
            continue
        trials = trials_by(found)
        of_users = []
        for user in users:
            letter, values = USERS[user], values_in(trials, user)
            if len(values) == 1 and figure == "ms":
                agreements.append(values[0] > 0)
                of_users.append(f"{letter} {number(values[0], DIGITS[figure], sign=True)}{MARKS[agreements[-1]]}")
            elif len(values) > 1:
                text, agrees = judged(how, values, figure)
                agreements.append(agrees)
                of_users.append(f"{letter} {text}{MARKS[agrees]}")
        if of_users:
            texts.append(f"{DATA[data]}: {', '.join(of_users)}")
    return "<br>".join(texts) or "–", agreements


def outcome_of(claim, only=None):
    """Our differences, and the verdict on them."""
    text, agreements = compared(claim.study, lambda trials, user: values_of(trials, user, claim), claim.how, claim.figure, claim.users, only)
    return text, verdict_of(agreements, claim.how)


def after_1000_rounds(claim):
    """The claim on trials of 1,000 rounds instead of 5,000: their slopes, and so the limits of these, are from round 100 on."""
    if claim.how != BELOW or claim.other == 1.0:
        return claim
    lower = claim.other * math.log(500) / math.log(100)
    return claim._replace(other=lower, text=claim.text.replace(f"{claim.other:.2f}", f"{lower:.2f}").replace("500 rounds", "100 rounds"))


def clueweb_table():
    rows = []
    for place, claim in enumerate(map(after_1000_rounds, CLAIMS), start=1):
        if claim.study == "linear":
            rows.append([str(place), claim.text, outcome_of(claim, WITHOUT_VERDICT)[0].removeprefix("ClueWeb09: ")])
    return markdown(["", "claim", "our difference"], rows)


def claims_table(paper):
    rows = []
    for place, claim in enumerate(CLAIMS, start=1):
        if claim.paper == paper:
            text, verdict = outcome_of(claim)
            rows.append([str(place), claim.text, claim.place, text, f"bound void; the slope: {verdict}" if claim.how == BELOW else verdict])
    return markdown(["", "claim", "where it is printed", "our difference", "verdict"], rows)


def verdicts_table():
    kinds = ["reproduced", "contradicted", "mixed", "no difference found", "not decided", "bound void", "not run yet"]
    counts = {paper: dict.fromkeys(kinds, 0) for paper in (WWW21, WWW22, SIGIR22)}
    for claim in CLAIMS:
        verdict = outcome_of(claim)[1].replace("*", "").split(":")[0]
        counts[claim.paper]["bound void" if claim.how == BELOW else verdict] += 1
    return markdown(["paper", *kinds], [[paper, *(str(count) for count in found.values())] for paper, found in counts.items()])


def questions_table():
    rows = []
    for key, question, study, figure, first, second in QUESTIONS:
        text, _ = compared(study, lambda trials, user: differences(trials, user, figure, first, second), BETTER, figure)
        rows.append([key, question, text])
    return markdown(["setting", "question", "difference"], rows)


def each_cell(study):
    """Data, user and ranker with its trials."""
    for data, found in read(study).items():
        trials = trials_by(found)
        for (user, ranker), own in trials.items():
            yield found, trials, data, user, ranker, own


def results_table(study):
    """Shows what every ranker of a study came to."""
    rows = []
    for _, _, data, user, ranker, own in each_cell(study):
        fields = []
        for figure in ("offline", "cndcg", "certain", "slope", "slope_examined"):
            values = [trial.get(figure) for trial in own.values()]
            fields.append("–" if None in values else estimate(values, DIGITS[figure]))
        rows.append([DATA[data], user, f"`{ranker}`", str(len(own)), *fields])
    return markdown(["data", "user", "ranker", "trials", "offline NDCG@10", "online cNDCG@10", "certain", "slope of regret", "on examined documents"], rows)


def against_table(study, ending):
    """Differences of each ranker from its reference, which has the same first word and this ending, offline and online."""
    rows = []
    for _, trials, data, user, ranker, _ in each_cell(study):
        reference = ranker.split("-")[0] + ending
        if reference != ranker:
            rows.append([DATA[data], user, f"`{ranker}` − `{reference}`", *(
                judged(BETTER, differences(trials, user, figure, ranker, reference), figure)[0] for figure in ("offline", "cndcg", "cndcg_early"))])
    return markdown(["data", "user", "difference", "offline NDCG@10", "online cNDCG@10", "online, first 100 rounds"], rows)


def grid_table():
    """PairRank's λ and α: how sure it is at the end, and what it learned more than with those of protocol `paper`."""
    trials, reference = trials_by(read("grid")["mq2008"]), "lambda-100-alpha-0.003"
    rows = []
    for ranker in dict.fromkeys(ranker for _, ranker in trials):
        _, prior, _, alpha = ranker.split("-")
        certain = statistics.fmean(trial["certain"] for user in USERS for trial in trials[user, ranker].values())
        rows.append([prior, alpha, number(certain, 3), *("" if ranker == reference else judged(
            BETTER, differences(trials, user, "offline", ranker, reference), "offline")[0] for user in USERS)])
    return markdown(["λ", "α", "certain", *USERS], rows)


def time_table():
    rows = []
    for _, _, data, _, ranker, own in each_cell("time"):
        trial = next(iter(own.values()))
        parts = ", ".join(f"{stage} {number(value, 2)}" for stage, value in trial["stages"].items() if value >= 0.005)
        rows.append([DATA[data], f"`{ranker}`", f"{number(trial['ms'], 2)} ms", parts])
    return markdown(["data", "ranker", "a round", "of which"], rows)


def two_layers_table():
    """The row that Figure 2.11 of the thesis lacks, with what a trial takes."""
    rows = []
    for found, trials, data, user, ranker, own in each_cell("two-layers"):
        fields = [estimate([trial[figure] for trial in own.values()], DIGITS[figure]) for figure in ("offline", "cndcg", "certain")]
        against = differences(trials, user, "offline", ranker, "full-100x100") if ranker != "full-100x100" else []
        hours = [trial["ms"] * found["rounds"] / 3.6e6 for trial in own.values()]
        rows.append([DATA[data], f"`{ranker}`", str(len(own)), *fields, judged(BETTER, against, "offline")[0] if len(against) > 1 else "",
                     f"{60 * min(hours):.1f}", f"{sum(hours):.2f}"])
    return markdown(["data", "ranker", "trials", "offline NDCG@10", "online cNDCG@10", "certain", "offline, minus `full-100x100`",
                     "minutes of the quickest trial", "hours of all"], rows)


def overtaking_table():
    """Networks of 100 units against PairRank, by rounds."""
    rows = []
    for data, found in read("overtaking").items():
        trials = trials_by(found)
        network = trials["perfect", "full-100"]
        for place, point in enumerate(next(iter(network.values()))["curve"]):
            if point["round"] not in (250, 500, 1000, 1500, 2000, 3000, 4000, 5000):
                continue

            def offline(ranker):
                return {key: {"offline": trial["curve"][place]["offline"]} for key, trial in trials["perfect", ranker].items()}
            against = [judged(BETTER, paired(offline("full-100"), offline(ranker), "offline"), "offline") for ranker in ("pairrank", "pairrank-matched")]
            rows.append([DATA[data], f"{point['round']:,}", estimate([trial["offline"] for trial in offline("full-100").values()], 4),
                         *(text + MARKS[agrees] for text, agrees in against)])
    return markdown(["data", "rounds", "`full-100`, offline NDCG@10", "minus `pairrank`", "minus `pairrank-matched`"], rows)


SHOWN_RANKS = (1, 2, 3, 5, 10, 20, 30, 40, 60, 80)


def blocks_table():
    """Figure 7 of PairRank: the size of the block at a rank, and the number of blocks."""
    rows = []
    for data, found in read("blocks").items():
        for (user, _), trials in trials_by(found).items():
            for place in (0, 4, 24):
                points = [trial["curve"][place] for trial in trials.values()]
                means = [[point["sizes"].get(str(rank)) for point in points] for rank in SHOWN_RANKS]
                rows.append([DATA[data], user, f"{points[0]['round']:,}", number(statistics.fmean(point["blocks"] for point in points), 1),
                             *("–" if None in sizes else number(statistics.fmean(sizes), 1) for sizes in means)])
    return markdown(["data", "user", "round", "blocks", *(f"rank {rank}" for rank in SHOWN_RANKS)], rows)


def other_outcomes_table(study, header):
    """Comparisons of linear rankers that have another outcome in another study, by data, on the trials that both have."""
    rows, alike = [], 0
    linear = read("linear")
    for data, other in read(study).items():
        first, second = trials_by(linear.get(data, {"trials": []})), trials_by(other)
        both = [{key: {at: trial for at, trial in one[key].items() if at in first[key] and at in second[key]}
                 for key in first.keys() & second.keys()} for one in (first, second)]
        for place, claim in enumerate(CLAIMS, start=1):
            for user in claim.users if claim.study == "linear" else ():
                values = [values_of(trials, user, claim) for trials in both]
                if min(map(len, values)) < 2:
                    continue
                (here, agreed), (there, agrees) = [judged(claim.how, differences_of, claim.figure) for differences_of in values]
                alike += agreed is agrees
                if agreed is not agrees:
                    rows.append([str(place), claim.text, f"{DATA[data]}, {USERS[user]}", here + MARKS[agreed], there + MARKS[agrees]])
    rows.sort(key=lambda row: int(row[0]))
    rows.append(["", f"the other {alike} comparisons", "", "", "the same outcome"])
    return markdown(["", "claim", "data, user", *header], rows)


def figures_table():
    lines = []
    for study, names in FIGURES.items():
        for data, title in DATA.items():
            for name in names:
                if not (PICTURES / f"{study}-{data}-{name}.svg").exists():
                    continue
                stem, caption = f"evidence/papers/{study}-{data}-{name}", f"`{study}`, {title}: {CAPTIONS[name]}"
                lines.append(f'{caption}\n\n<picture><source media="(prefers-color-scheme: dark)" srcset="{stem}-dark.svg">'
                             f'<img src="{stem}.svg" alt="{caption.replace("`", "")}"></picture>\n')
    return "\n".join(lines)


def config_of(study):
    return f"configs/papers/{study.removesuffix('-recommended')}.toml"


def configuration(study):
    return tomllib.loads((ROOT / config_of(study)).read_text())


def planned_trials(found):
    """Counts trials: of MQ2008 and ClueWeb09 as the configuration says, of generated data for as many seeds as it has."""
    config = configuration(found["study"])
    generated = found["source"].startswith("synth:")
    seeds = found["seeds"] if generated else config["protocol"]["seeds"]
    folds = found["folds"] if generated else config["data"]["folds"]
    return len(config["ranker"]) * len(config["clicks"]["models"]) * len(folds) * len(seeds)


def sources_table():
    rows = []
    for name, found in sorted(records.family("papers").items()):
        machine = found["machine"]
        planned = planned_trials(found)
        rows.append([name, f"`{config_of(found['study'])}`, {found['source']}",
                     f"{found['rounds']:,}", f"{len(found['folds'])} × {len(found['seeds'])}",
                     "all" if len(found["trials"]) == planned else f"{len(found['trials'])} of {planned}",
                     f"{machine['date']}, {machine['processor']}, {machine['cores']} cores"])
    return markdown(["record", "experiment", "rounds", "folds × seeds", "trials", "run"], rows)


def theory_trials():
    for study in ("theory", "theory-networks"):
        for found in read(study).values():
            for (_, ranker), trials in trials_by(found).items():
                yield study, ranker, [trial["curve"] for trial in trials.values()]


def theory_table():
    """Regret as it grew, and what became of the certain orders."""
    rows = []
    for study, ranker, curves in theory_trials():
        fields = []
        for rounds in (10_000, 100_000, 400_000):
            values = [point["regret"] for curve in curves for point in curve if point["round"] == rounds]
            fields.append(estimate(values, 0))
        wrong = [sum(point["wrong"] for point in curve) for curve in curves]
        of = sum(point["of"] for curve in curves for point in curve)
        all_certain = [next((point["round"] for point in curve if point["certain"] is not None and point["certain"] >= 0.999), None)
                       for curve in curves]
        last = [curve[-1] for curve in curves]
        theory = last[0]["alpha"] is not None
        rows.append(["network" if "networks" in study else "linear", f"`{ranker}`", str(len(curves)), *fields,
                     *([f"{max(all_certain):,}" if None not in all_certain else "–", f"{sum(wrong):,} of {of:,}",
                        f"{sum(count > 0 for count in wrong)} of {len(wrong)}"] if ranker != "greedy" else ["–"] * 3),
                     *([number(statistics.fmean(point["alpha"] for point in last), 2),
                        number(statistics.fmean(point["log_det"] for point in last), 1)] if theory else ["–"] * 2)])
    return markdown(["", "ranker", "trials", "regret after 10,000 rounds", "100,000", "400,000", "all orders certain from round",
                     "wrong certain orders", "trials with one", "α", "log det A"], rows)


TABLES = {
    "theory": theory_table, "verdicts": verdicts_table, "questions": questions_table, "sources": sources_table,
    "figures": figures_table, "two-layers": two_layers_table, "overtaking": overtaking_table, "blocks": blocks_table, "time": time_table,
    "grid": grid_table, "clueweb": clueweb_table,
    **{name: lambda paper=paper: claims_table(paper) for name, paper in zip(("pairrank", "olranknet", "p2"), PAPERS)},
    **{study: lambda study=study: results_table(study)
       for study in ("linear", "linear-recommended", "networks", "skyline", "examined-after", "ensembles", "sizes")},
    "three-grades-means": lambda: results_table("three-grades"),
    "three-grades": lambda: other_outcomes_table("three-grades", ["five grades", "three grades"]),
    "recommended": lambda: other_outcomes_table("linear-recommended", ["`paper`", "`recommended`"]),
    "steps": lambda: against_table("steps", "-20"), "confidence": lambda: against_table("confidence", "-none"),
}


def slope_of(curve, key):
    """The exponent b of y ∝ t^b over the last nine tenths of the rounds, by least squares on log axes."""
    points = [(math.log(point["round"]), math.log(point["online"][key])) for point in curve
              if point["round"] >= curve[-1]["round"] / 10 and point["online"].get(key, 0) > 0]
    if len(points) < 3:
        return None
    return statistics.linear_regression(*zip(*points)).slope


def kept_curve(study, curve):
    """Returns what the study's table reads from the curve, if anything."""
    if study.startswith("theory"):
        return {"curve": theory_curve(curve)}
    if study == "overtaking":
        return {"curve": [{"round": point["round"], "offline": round(point["offline"]["ndcg@10"], 5)} for point in curve]}
    if study == "blocks":
        return {"curve": [{"round": point["round"], "blocks": round(point["blocks"], 3)}
                          | ({"sizes": rounded(point["block_size"])} if point["round"] in (200, 1000, 5000) else {}) for point in curve]}
    return {}


def rounded(sizes):
    return {rank: None if size is None else round(size, 3) for rank, size in sizes.items()}


def trial_of(file, study=""):
    summary, curve = json.loads(file.read_text()), curve_of(file)
    first, last = curve[0], curve[-1]
    stages = {stage: round(1e3 * seconds / summary["rounds"], 3) for stage, seconds in summary["seconds_by_stage"].items() if stage != "eval"}
    slope, slope_examined = (None if value is None else round(value, 4) for value in (slope_of(curve, "regret"), slope_of(curve, "examined_regret")))
    return {"user": summary["clicks"], "ranker": summary["ranker"], "fold": summary["fold"], "seed": summary["seed"],
            "offline": round(last["offline"]["ndcg@10"], 5), "cndcg": round(last["online"]["cndcg@10"], 3),
            "offline_first": round(first["offline"]["ndcg@10"], 5), "cndcg_early": round(first["online"]["cndcg@10"], 3),
            "regret": last["online"]["regret"], "slope": slope, "slope_examined": slope_examined, "certain": last["certain_share"],
            "blocks_first": first["blocks"], "certain_first": first["certain_share"], "sizes": rounded(last["block_size"]), "cosine": last["cosine"],
            "ms": round(sum(stages.values()), 3), "stages": stages} | kept_curve(study, curve)


def theory_curve(curve):
    """Keeps what the theorems speak of after 10,000, 20,000, 50,000, … rounds, at the end, and where all orders were certain first.
    `wrong` and `of` count the certain orders since the point before."""
    kept, wrong, of, certain = [], 0, 0, False
    for point in curve:
        share = point.get("false_certain", {"share": 0, "of": 0})
        wrong, of = wrong + round(share["share"] * share["of"]), of + share["of"]
        becomes_certain = not certain and (point["certain_share"] or 0) >= 0.999
        certain = certain or becomes_certain
        if str(point["round"]).rstrip("0") not in ("1", "2", "5") and not becomes_certain and point is not curve[-1]:
            continue
        online = point["online"]
        kept.append({"round": point["round"], "pairs": point["pairs"], "regret": online["regret"], "examined": online["examined_regret"],
                     "random": point["random"]["online"]["regret"], "wrong": wrong, "of": of}
                    | {name: None if point.get(key) is None else round(point[key], 4)
                       for name, key in (("certain", "certain_share"), ("log_det", "log_det"), ("alpha", "alpha"))})
        wrong, of = 0, 0
    return kept


def add(study, data, outs, program):
    """The figures come from the first of several folders, which share out the rankers and seeds of an experiment."""
    manifests = [json.loads((out / "manifest.json").read_text()) for out in outs]
    config = manifests[0]["config"]
    trials = [trial_of(file, study) for out in outs for file in summaries_of(out)]
    users = config["clicks"]["models"]
    rankers = list(dict.fromkeys([*(ranker["name"] for ranker in configuration(study)["ranker"]), *(trial["ranker"] for trial in trials)]))
    machine, origin = machine_of(manifests[0]), config["data"]["source"]
    records.write("papers", f"{study}-{data}", {
        "machine": {key: machine[key] for key in ("processor", "cores", "date")}, "study": study,
        "source": origin if origin.startswith("synth:") else DATA[data.split("-")[0]], "rounds": config["protocol"]["rounds"],
        "seeds": sorted(set().union(*(one["seeds"] for one in manifests))), "folds": sorted(config["data"]["folds"]),
        "trials": by_plan(trials, users, rankers)})
    if program is None or data == WITHOUT_VERDICT:
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "report", str(outs[0]), "--figures", f"{folder}/figures", "--out", f"{folder}/report", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        for name in FIGURES.get(study, ()):
            for ground in ("", "-dark"):
                figure = pathlib.Path(folder, "figures", f"{users[-1]}-{name}{ground}.svg")
                if figure.exists():
                    (PICTURES / f"{study}-{data}-{name}{ground}.svg").write_text(figure.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add", nargs="+", required=True, metavar=("STUDY", "DATA OUT"))
    parser.add_argument("--program")
    arguments = parser.parse_args()
    study, data, *outs = arguments.add
    add(study, data, [pathlib.Path(out) for out in outs], arguments.program)


if __name__ == "__main__":
    main()
