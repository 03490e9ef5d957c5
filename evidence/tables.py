"""The renderer of tables, and the records of benchmarks from results.

evidence/tables.py --add-study NAME OUT [--with-times] | --add-long NAME OUT... | --add-generalisation OUT [NAME] | --add-fairness NAME OUT | --load NUMBER NAME...

tables.json says of each kind of table where its rows are in the record, which columns they have, and what stands above: a text in which
{a.b:format} is the value at that path. A format is Python's, or one of FORMATS; a value that is missing is a dash. evidence/pages.py
writes the tables into the pages. --add-study takes study.json of a study's folder as a record, with machine and date, with width ratios at 10, 100, 1,000 rounds and the last, and without times, which are only meaningful on an idle machine:
--with-times keeps them. --add-long takes what the rounds of one trial in each folder have cost, by its curve.jsonl. --add-generalisation does so with generalisation.json of a folder of `olrank bench generalisation`.
--add-fairness copies the last figures of an experiment with groups. --load records how many programs ran before the measurements of
these records began; a busy machine is then noted above their tables."""

import argparse
import json
import os
import pathlib
import statistics
import string

import records

SPECIFICATIONS = json.loads((pathlib.Path(__file__).parent / "tables.json").read_text())
IDLE_LOAD = 0.5
TIMES = ("milliseconds", "rounds-per-second", "peak-memory-bytes")
# The 97.5 % points of Student's t, by the number of values. Numbers between take that of fewer, which is wider.
T_97_5 = {2: 12.70620, 3: 4.30265, 4: 3.18245, 5: 2.77645, 6: 2.57058, 7: 2.44691, 8: 2.36462, 9: 2.30600, 10: 2.26216, 20: 2.09302}


# --- numbers and tables -------------------------------------------------------------------------


def half_width(values):
    """Half the width of the 95 % t interval of the mean."""
    point = T_97_5[max(count for count in T_97_5 if count <= len(values))]
    return point * statistics.stdev(values) / len(values) ** 0.5


def interval(values, digits):
    """The mean with the half-width of its 95 % t interval."""
    return "–" if None in values else f"{statistics.fmean(values):,.{digits}f} ± {half_width(values):,.{digits}f}".replace("-", "−")


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(fields) + " |\n" for fields in lines)


def read(name):
    return records.read("benchmarks", name)


def time(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.0f} ns" if seconds else "–"


def ratio(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def rate(one):
    memory = one["ceiling"]["name"] == "memory"
    return f"{(one['bytes'] if memory else one['operations']) / one['seconds']['median'] * 1e-9:.1f} {'GB/s' if memory else 'GFLOP/s'}"


def difference(value, digits):
    """A cell; it has a star if it differs from 0 at 5 % after Holm's correction."""
    if "minus_full" not in value:
        return "–"
    against = value["minus_full"]
    spread = "" if against["high"] is None else f" ± {against['high'] - against['mean']:.{digits}f}"
    star = "*" if against["t_p_holm"] is not None and against["t_p_holm"] < 0.05 else ""
    return f"{against['mean']:+.{digits}f}{spread}{star}".replace("-", "−")


def claim_estimate(claim):
    digits = 3 if claim["experiment"] == "F" or abs(claim["mean"]) < 0.1 else 2
    half = "" if claim["half_width_95"] is None else f" ± {claim['half_width_95']:.{digits}f}"
    return f"{claim['mean']:.{digits}f}{half}"


# A specification may write these behind a colon, next to Python's own formats.
FORMATS = {
    "time": time, "ratio": ratio, "rate": rate, "claim": claim_estimate, "MB": lambda value: f"{value / 1e6:.1f}", "MB0": lambda value: f"{value / 1e6:.0f}",
    "posterior": lambda value: f"{value / 1e6:.2f}", "sizes": lambda value: ", ".join(f"{key} = {size}" for key, size in value.items()),
    "work": lambda value: ", ".join(f"{size:,} {key}" for key, size in value.items()), "hertz": lambda value: f"{1e6 / value:,.0f}",
    "of_300": lambda value: str(round(value / 3)), "of_300_to_a_tenth": lambda value: f"{value / 3:.1f}",  # percents of the logs of a test
    "most": lambda value: f"{max(value.values()):.2f}", "span": lambda value: f"{min(value.values()):,} to {max(value.values()):,}",
    "percents": lambda value: ", ".join(f"{value[key]:.2f}" for key in ("p10", "median", "p90")), "ndcg": lambda value: f"{value:.4f}".removeprefix("0"),
    **{f"minus{digits}": lambda value, digits=digits: difference(value, digits) for digits in (0, 1, 4)}}


class Text(string.Formatter):
    """Fills a text of a specification."""

    def get_field(self, name, args, kwargs):
        value = kwargs
        for key in name.split("."):
            value = None if value is None else value[int(key)] if isinstance(value, list) else value.get(key)
        return value, name

    def format_field(self, value, form):
        if value is None:
            return "–"
        text = FORMATS[form](value) if form in FORMATS else format(value, form)
        return text if isinstance(value, str) else text.replace("-", "−")


def fill(text, values):
    return Text().vformat(text, (), values)


def columns_of(kind, rows, more=()):
    """The table of the rows by the columns of the specification, which have a header and a text each."""
    columns = SPECIFICATIONS[kind]["columns"]
    return markdown([header for header, _ in columns], [*([fill(text, row) for _, text in columns] for row in rows), *more])


def source(name, machine):
    busy = f" (**busy with other work**: load {machine['load']:.1f})" if machine.get("load", 0) > IDLE_LOAD else ""
    return f"[{name}](evidence/benchmarks.json), {machine['date']}, {machine['processor']}, {machine['cores']} cores{busy}, " \
        f"{machine['blas']}"


def above(kind, name, found, **more):
    lead = f"[{name}](evidence/benchmarks.json)" if SPECIFICATIONS[kind].get("without_machine") else source(name, found["machine"])
    return lead + fill(SPECIFICATIONS[kind]["above"], {**found, **more})


def plain_table(kind):
    """The rows at the path that the specification names, each with itself as `row`."""
    def table(name):
        found = read(name)
        return above(kind, name, found) + columns_of(kind, [{**one, "row": one} for one in found[SPECIFICATIONS[kind]["rows"]]])
    return table


# --- tables whose rows are put together ---------------------------------------------------------


def training_table(name):
    found = read(name)
    networks = {"linear": "linear", "mlp": f"m = {found['width']}"}
    return above("training", name, found) + columns_of("training", [{**one, "network": networks[one["network"]]} for one in found["rows"]])


def labels_table(name):
    found = read(name)
    peers = [peer for peer in found["rows"][0] if peer != "data"]
    return above("labels", name, found) + markdown(["data", *peers], [[one["data"], *(FORMATS["ndcg"](one[peer]) for peer in peers)] for one in found["rows"]])


def rounds_table(name):
    """A schedule of training adds "elapsed", the mean round from one training on the whole history to the next."""
    found = read(name)
    by_n = {}
    for one in found["measurements"]:
        _, structure, stage = one["name"].split("/")
        by_n.setdefault(one["parameters"]["n"], {})[stage] = one["seconds"]["median"]
    stages = ["score", "width", "rank", "observe", "train", "total"] + (["elapsed"] if structure.endswith("-growth") else [])
    rows = [[f"{n:,}"] + [time(by_n[n].get(stage) or 0) for stage in stages] for n in sorted(by_n)]
    exponents = {one["stage"]: one for one in found["exponents"]}
    for text, key in (("grows like n^", "exponent"), (f"from {max(by_n) // 2:,} on", "last_half")):
        if key == "exponent" or any(one.get(key) is not None for one in exponents.values()):
            rows.append([text] + [fill("{it:.2f}", {"it": exponents.get(stage, {}).get(key)}) for stage in stages])
    header = [structure, *stages]
    if "unit" in found:
        unit, at = found["unit"]["seconds"], "elapsed" if "elapsed" in stages else "total"
        header.append(f"{at} in GEMM")
        for row, n in zip(rows, [*sorted(by_n), None, None]):
            row.append(f"{by_n[n][at] / unit:.2f}" if n else "")
    return above("rounds", name, found) + markdown(header, rows)


SHOWN_ROUNDS = (1000, 3000, 5000, 10000, 20000, 50000, 100000)


def long_table(name):
    """The first span, the third, those that end at a round number, and the last."""
    found = read(name)
    first = found["rankers"][0]
    rows = [{**span, "name": ranker["name"], "first": span["round"] - span["rounds"] + 1, "over": span["mean_seconds"] / of_first["mean_seconds"]}
            for number, of_first in enumerate(first["spans"])
            if number in (0, 2, len(first["spans"]) - 1) or of_first["round"] in SHOWN_ROUNDS
            for ranker in found["rankers"] for span in [ranker["spans"][number]]]
    ends = "; ".join(f"{ranker['name']} grows {ranker['growth']:.2f} times"
                     + (" and resumes to the same bits" if ranker.get("resumes_to_same_bits") else "") for ranker in found["rankers"])
    return above("long", name, found, ends=ends) + columns_of("long", rows).replace("over the first", f"over {first['name']}")


def study_table(kind):
    """A table for each user, of what each covariance came to."""
    def table(name):
        found = read(name)
        cells = {cell["ranker"]: cell for cell in found["rankers"]}
        text = []
        for user in found["users"]:
            rows = []
            for result in user["results"]:
                cell, ratios = cells[result["ranker"]], result["width_ratios"]
                noise = "" if cell["noise_variance"] is None else f", ν² = {cell['noise_variance']:g}"
                rows.append({**cell, "structure": cell["structure"] + noise if kind == "study" else cell["structure"], "figures": result["figures"],
                             "ratios": "–" if not ratios or result["ranker"].startswith("none") else ", ".join(f"{at['median']:.2f}" for at in ratios),
                             "last": ratios[-1] if ratios and cell["alpha"] is not None else None})
            rounds = next((one["width_ratios"] for one in user["results"] if one["width_ratios"]), [])
            shown = columns_of(kind, rows)
            text += [above(kind, name, found, user=user["clicks"], cell=found["rankers"][0], seed_count=len(found["seeds"])),
                     shown.replace("| width over exact |", f"| width over exact, t = {', '.join(f'''{at['round']:,}''' for at in rounds)} |") if rounds else shown]
        return "".join(text)
    return table


def claims_table(letter):
    """The claims of one experiment."""
    return lambda name: columns_of("claims", [{**claim, "row": claim, "theory": f"≤ {claim['at_most']:g}".replace("-", "−") if "at_most" in claim else "–"}
                                              for claim in read(name)["claims"] if claim["experiment"] == letter])


def gaps_table(figure):
    """The means of a figure, a column for each line."""
    def table(name):
        found = next(one for one in read(name)["figures"] if one["name"] == figure)
        lines = [{x: value for x, value, *_ in line["points"]} for line in found["lines"]]
        rows = [[f"{x:g}", *(f"{line[x]:.3g}" if x in line else "–" for line in lines)] for x in sorted(set().union(*lines))]
        return f"{found['subtitle']}\n\n" + markdown([found["x"], *(line["line"] for line in found["lines"])], rows)
    return table


def lengths_table(name):
    """Shows what theory allows as a slope over m and what was measured, a line for each loss."""
    claims = {(claim["subject"], claim["quantity"]): claim for claim in read(name)["claims"]}
    return columns_of("lengths", [{"loss": subject.split(",")[0], "whole": whole, "long": claims[subject, "b from m = 50 on"]}
                                  for (subject, quantity), whole in claims.items()
                                  if subject.endswith(", noise by query") and quantity == "b: slope over m"])


def study_of_generalisation(name):
    """Says what was run, where."""
    found = read(name)
    data = "; ".join(fill("{name}: the {queries} of {of} queries with {longest} documents or more", one) for one in found["data"])
    return f"{source(name, found['machine'])}; {len(found['seeds'])} seeds. Sizes: {found['sizes']}.{f' {data}.' if data else ''}\n"


def vowpal_table(name):
    """Rounds and what they show, beside Vowpal Wabbit's."""
    found = read(name)
    rows, width = [], len(SPECIFICATIONS["vowpal"]["columns"])
    for size in found["sizes"]:
        rows += [[fill(text, {**size, **one}) for _, text in SPECIFICATIONS["vowpal"]["columns"]] for one in size["players"]]
        rows += [[fill("{docs} × {features}", size), f"the {end} list", *[""] * (width - 3), f"{size[end]:.3f}"] for end in ("best", "random")]
    return above("vowpal", name, found) + columns_of("vowpal", [], rows)


# --- fairness -----------------------------------------------------------------------------------

FAIR_FIGURES = (("online cNDCG@10", "cndcg", 1), ("offline NDCG@10", "offline", 4), ("size of UF_T", "size", 2),
                ("fair rounds", "fair_share", 4), ("violated orders a list", "violations", 2), ("no fair list", "unrealisable", 0))
FAIR_PAIRS = (("fairexp", "pairrank"), ("fairexp-blocks", "pairrank-blocks"), ("fairexp", "pairrank-fairco"), ("fairexp", "fairco"),
              ("fairexp-exact", "fairexp"), ("pairrank", "pdgd"), ("pairrank", "dbgd"), ("fairexp", "pdgd"), ("fairco", "pdgd"),
              ("toprank-fairexp", "toprank"), ("pairrank", "toprank"))


def fair_trials(found):
    trials = {}
    for trial in found["trials"]:
        trials.setdefault((trial["user"], trial["ranker"]), []).append(trial)
    return trials


def fairness_table(name):
    """Shows what each ranker came to, by user."""
    found = read(name)
    rows = [[user, f"`{ranker}`", *(interval([trial[key] for trial in trials], digits) for _, key, digits in FAIR_FIGURES)]
            for (user, ranker), trials in fair_trials(found).items()]
    groups = "; ".join(f"{letter}: {one['docs']:,} documents, mean grade {one['mean_grade']:.3f}" for letter, one in found["groups"].items())
    beta = found["beta"] if isinstance(found["beta"], list) else [found["beta"]]
    return above("fairness", name, found, groups=groups, beta=", ".join(f"{one:.4f}" for one in beta), seed_count=len(found["seeds"])) + \
        markdown(["user", "ranker", *(title for title, _, _ in FAIR_FIGURES)], rows)


def faircompare_table(name):
    """Differences of two rankers on the same seeds."""
    trials, rows = fair_trials(read(name)), []
    for user in dict.fromkeys(user for user, _ in trials):
        for first, second in FAIR_PAIRS:
            both = list(zip(trials.get((user, first), ()), trials.get((user, second), ())))
            if both:
                rows.append([user, f"`{first}` − `{second}`", *(
                    interval([None if None in (a[key], b[key]) else a[key] - b[key] for a, b in both], digits)
                    for key, digits in (("cndcg", 1), ("offline", 4), ("violations", 2)))])
    return markdown(["user", "difference", "online cNDCG@10", "offline NDCG@10", "violated orders a list"], rows)


# --- the attack ---------------------------------------------------------------------------------


def attack_table(name):
    """The runs of the attack: what each part tried and broke, what broke, or what was measured."""
    runs = dict(sorted(records.family("attack").items(), key=lambda run: (not run[0].startswith("before"), run[0])))
    parts = list(dict.fromkeys(part for run in runs.values() for part in run["parts"]))

    def cell(one):
        return "–" if one is None else f"{one['tried']:,}, {one['broken']:,} broken, {one['seconds']:.0f} s"

    def text(value):
        if isinstance(value, dict):
            return ", ".join(f"{key} {text(one)}" for key, one in value.items())
        return " → ".join(map(text, value)) if isinstance(value, list) else str(value)

    if name == "parts":
        about = {part: one["what"] for run in runs.values() for part, one in run["parts"].items()}
        return markdown(["part", "attack", *runs], [[f"`{part}`", about[part], *(cell(run["parts"].get(part)) for run in runs.values())] for part in parts])
    rows = [[f"`{part}`", run, f"{line:.500}".replace("|", "\\|").replace("<", "&lt;")] for part in parts for run, found in runs.items()
            for line in (found["parts"].get(part, {}).get("sentences", []) if name == "broken" else
                         [f"{key.replace('_', ' ')}: {text(value)}" for key, value in found["parts"].get(part, {}).get("figures", {}).items()])]
    return markdown(["part", "run", "what broke" if name == "broken" else "figure"], rows)


KINDS = {"field": plain_table("field"), "fairness": fairness_table, "attack": attack_table, "faircompare": faircompare_table, "ops": plain_table("ops"), "rounds": rounds_table, "long": long_table,
         "peers": plain_table("peers"), "study": study_table("study"), "ladder": study_table("ladder"), "training": training_table, "labels": labels_table,
         "vowpal": vowpal_table, "generalisation": study_of_generalisation, "lengths": lengths_table,
         **{f"claims{letter}": claims_table(letter) for letter in "ABCDEF"},
         **{f"gaps_{noise}": gaps_table(f"gap-by-length-{noise}") for noise in ("query", "document")}}


# --- files from results -------------------------------------------------------------------------


def summaries_of(out):
    """The files of all trials of a folder."""
    return sorted(out.glob("trials/*/*/fold*/seed*/summary.json"))


def curve_of(summary):
    """The evaluations of a trial after rounds."""
    lines = (summary.parent / "curve.jsonl").read_text().splitlines()
    return [point for point in map(json.loads, lines) if point["round"] > 0]


def by_plan(trials, users, rankers):
    return sorted(trials, key=lambda trial: (users.index(trial["user"]), rankers.index(trial["ranker"]), trial.get("fold", 0), trial["seed"]))


def machine_of(manifest):
    cores = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    processor = next((line.split(":")[1].strip() for line in cores if line.startswith("model name")), "unknown")
    return {"processor": processor, "cores": len(os.sched_getaffinity(0)), "blas": manifest.get("blas"),
            "compiler": manifest.get("compiler"), "date": manifest["started"][:10]}


def add_generalisation(folder, name="generalisation"):
    """Without the path of the data, which is the machine's."""
    found = json.loads((folder / "generalisation.json").read_text())
    records.write("benchmarks", name, {"machine": machine_of(json.loads((folder / "manifest.json").read_text())), **found})


def add_long(name, folders):
    """Adds what rounds cost between the evaluations of trials of four at least: a folder for each ranker, which it names."""
    rankers = []
    for folder in folders:
        spans, earlier = [], {"round": 0, "seconds": {}}
        for point in curve_of(summaries_of(folder)[0]):
            rounds = point["round"] - earlier["round"]
            spent = {stage: seconds for stage, seconds in point["seconds"].items() if stage != "eval"}
            stages = {stage: (seconds - earlier["seconds"].get(stage, 0)) / rounds for stage, seconds in spent.items()}
            spans.append({"round": point["round"], "rounds": rounds, "pairs": point["pairs"], "seconds": sum(stages.values()),
                          "mean_seconds": sum(spent.values()) / point["round"], "seconds_by_stage": stages,
                          "offline_ndcg": point["offline"]["ndcg@10"], "drift": point["drift"], "posterior_bytes": point.get("posterior_bytes")})
            earlier = point
        rankers.append({"name": folder.name, "growth": spans[-1]["seconds"] / spans[2]["seconds"], "spans": spans})
    manifest = json.loads((folders[0] / "manifest.json").read_text())
    records.write("benchmarks", name, {"command": manifest["command"], "machine": machine_of(manifest), "rankers": rankers})


def add_study(name, folder, with_times):
    study = json.loads((folder / "study.json").read_text())
    for user in study["users"]:
        for result in user["results"]:
            widths = result["width_ratios"]
            result["width_ratios"] = [at for at in widths if at["round"] in (10, 100, 1000, 10000) or at is widths[-1]]
            if not with_times:
                del result["milliseconds_by_stage"]
                for slug in TIMES:
                    result["figures"].pop(slug, None)
    records.write("benchmarks", name, {"machine": machine_of(json.loads((folder / "manifest.json").read_text())), **study})


def add_fairness(name, folder):
    """The last figures of each trial with groups; violations are a mean over the whole trial. Users of whom a seed is missing are left out."""
    manifest = json.loads((folder / "manifest.json").read_text())
    config, one, trials = manifest["config"], manifest["fairness"][0], []
    whole = len(manifest["seeds"]) * len(config["ranker"])
    for file in summaries_of(folder):
        summary = json.loads(file.read_text())
        if len(list(folder.glob(f"trials/*/{summary['clicks']}/fold*/seed*/summary.json"))) < whole:
            continue
        last, fairness, curve = summary["last"], summary["fairness"], curve_of(file)
        violations = [point["fairness"]["violations"] for point in curve]
        counted = None not in violations
        trials.append({"user": summary["clicks"], "ranker": summary["ranker"], "seed": summary["seed"],
                       "cndcg": last["online"]["cndcg@10"], "offline": last["offline"]["ndcg@10"],
                       "size": abs(fairness["unfairness"]), "fair_share": fairness["fair_share"],
                       "violations": statistics.fmean(violations) if counted else None, "unrealisable": fairness["unrealisable"],
                       "unfairness": [[point["round"], round(point["fairness"]["unfairness"], 3)] for point in curve],
                       "violations_by_round": [round(value, 3) for value in violations] if counted else None})
    origin = config["data"]["source"]
    records.write("benchmarks", name, {
        "machine": machine_of(manifest), "source": origin if origin.startswith("synth:") else pathlib.Path(origin).name.upper(),
        "rounds": config["protocol"]["rounds"], "seeds": manifest["seeds"], "groups": one["groups"], "beta": one["beta"], "epsilon": one["epsilon"],
        "trials": by_plan(trials, list(dict.fromkeys(config["clicks"]["models"])), [ranker["name"] for ranker in config["ranker"]])})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add-study", nargs=2, metavar=("NAME", "OUT"))
    parser.add_argument("--with-times", action="store_true")
    parser.add_argument("--add-long", nargs="+", metavar=("NAME", "OUT"))
    parser.add_argument("--add-generalisation", nargs="+", metavar=("OUT", "NAME"))
    parser.add_argument("--add-fairness", nargs=2, metavar=("NAME", "OUT"))
    parser.add_argument("--load", nargs="+", metavar=("NUMBER", "NAME"))
    arguments = parser.parse_args()
    for name in (arguments.load or ())[1:]:
        found = read(name)
        found["machine"]["load"] = float(arguments.load[0])
        records.write("benchmarks", name, found)
    if arguments.add_study:
        add_study(arguments.add_study[0], pathlib.Path(arguments.add_study[1]), arguments.with_times)
    if arguments.add_long:
        add_long(arguments.add_long[0], [pathlib.Path(folder) for folder in arguments.add_long[1:]])
    if arguments.add_generalisation:
        add_generalisation(pathlib.Path(arguments.add_generalisation[0]), *arguments.add_generalisation[1:])
    if arguments.add_fairness:
        add_fairness(arguments.add_fairness[0], pathlib.Path(arguments.add_fairness[1]))


if __name__ == "__main__":
    main()
