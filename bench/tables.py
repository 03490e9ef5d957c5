"""The tables of pages from the files in docs/evidence/benchmarks, and these files from results.

bench/tables.py --add-study NAME OUT [--with-times] | --add-generalisation OUT [NAME] | --add-fairness NAME OUT | --load NUMBER NAME...

bench/pages.py writes the tables into the pages. --add-study copies study.json of a study's folder into
docs/evidence/benchmarks, with machine and date, with width ratios at 10, 100, 1,000 rounds and the last, and without times, which are
only meaningful on an idle machine: --with-times keeps them. --add-generalisation does so with generalisation.json of a folder of
`olrank bench generalisation`. --add-fairness copies the last figures of an experiment with groups. --load records how many
programs ran before the measurements of these files began; a busy machine is then noted above their tables."""

import argparse
import json
import os
import pathlib
import statistics

FILES = pathlib.Path("docs/evidence/benchmarks")
IDLE_LOAD = 0.5
TIMES = ("milliseconds", "rounds-per-second", "peak-memory-bytes")


# Of so many values: the 97.5 % point of Student's t. Numbers between take that of fewer, which is wider.
T_97_5 = {2: 12.70620, 3: 4.30265, 4: 3.18245, 5: 2.77645, 6: 2.57058, 7: 2.44691, 8: 2.36462, 9: 2.30600, 10: 2.26216, 20: 2.09302}


def half_width(values):
    """Of the 95 % t interval of the mean."""
    point = T_97_5[max(count for count in T_97_5 if count <= len(values))]
    return point * statistics.stdev(values) / len(values) ** 0.5


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(fields) + " |\n" for fields in lines)


def dump(value, indent="\n"):
    """JSON in which what fits into a line has one, and each of many trials, too."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(line) + len(indent) <= 160:
        return line
    deeper = indent + " "
    if isinstance(value, list):
        return f"[{deeper}" + f",{deeper}".join(dump(one, deeper) for one in value) + f"{indent}]"
    fields = []
    for key, one in value.items():
        text = dump(one, deeper)
        if key == "trials" and "\n" in text:
            text = "[\n" + ",\n".join(json.dumps(trial, ensure_ascii=False) for trial in one) + "\n]"
        fields.append(f"{json.dumps(key, ensure_ascii=False)}: {text}")
    return f"{{{deeper}" + f",{deeper}".join(fields) + f"{indent}}}"


def write(path, found):
    path.write_text(dump(found) + "\n")


def read(name):
    return json.loads((FILES / f"{name}.json").read_text())


def source(name, machine):
    busy = f" (**busy with other work**: load {machine['load']:.1f})" if machine.get("load", 0) > IDLE_LOAD else ""
    return f"[{name}.json](evidence/benchmarks/{name}.json), {machine['date']}, {machine['processor']}, {machine['cores']} cores{busy}, " \
        f"{machine['blas']}"


def time(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.0f} ns"


def ops_table(name):
    found = read(name)
    rows = []
    for one in found["measurements"]:
        memory = one["ceiling"]["name"] == "memory"
        rate = (one["bytes"] if memory else one["operations"]) / one["seconds"]["median"] * 1e-9
        sizes = ", ".join(f"{key} = {value}" for key, value in one["parameters"].items())
        rows.append([f"`{one['name']}`", sizes, time(one["seconds"]["median"]), f"{rate:.1f} {'GB/s' if memory else 'GFLOP/s'}",
                     one["ceiling"]["name"], f"{one['share']:.2f}"])
    header = ["operation", "sizes", "processor time", "rate", "ceiling", "share"]
    return f"{source(name, found['machine'])}; `{found['command']}`\n\n" + markdown(header, rows)


def exponent_text(value):
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def rounds_table(name):
    """With a schedule of training also "elapsed", the mean round from one training on the whole history to the next."""
    found = read(name)
    by_n = {}
    for one in found["measurements"]:
        _, structure, stage = one["name"].split("/")
        by_n.setdefault(one["parameters"]["n"], {})[stage] = one["seconds"]["median"]
    stages = ["score", "width", "rank", "observe", "train", "total"] + (["elapsed"] if structure.endswith("-growth") else [])
    rows = [[f"{n:,}"] + [time(by_n[n][stage]) if by_n[n].get(stage) else "–" for stage in stages] for n in sorted(by_n)]
    exponents = {one["stage"]: one for one in found["exponents"]}
    rows.append(["grows like n^"] + [exponent_text(exponents.get(stage, {}).get("exponent")) for stage in stages])
    if any(one.get("last_half") is not None for one in exponents.values()):
        rows.append([f"from {max(by_n) // 2:,} on"] + [exponent_text(exponents.get(stage, {}).get("last_half")) for stage in stages])
    header = [structure, *stages]
    if "unit" in found:
        unit, at = found["unit"]["seconds"], "elapsed" if "elapsed" in stages else "total"
        header.append(f"{at} in GEMM")
        for n, row in zip(sorted(by_n), rows):
            row.append(f"{by_n[n][at] / unit:.2f}")
        for row in rows[len(by_n):]:
            row.append("")
    return f"{source(name, found['machine'])}; `{found['command']}`\n\n" + markdown(header, rows)


SHOWN_ROUNDS = (1000, 3000, 5000, 10000, 20000, 50000, 100000)


def long_table(name):
    """The first span, the third, those that end at a round number, and the last."""
    found = read(name)
    first = found["rankers"][0]
    rows = []
    for number, of_first in enumerate(first["spans"]):
        if number not in (0, 2, len(first["spans"]) - 1) and of_first["round"] not in SHOWN_ROUNDS:
            continue
        for ranker in found["rankers"]:
            span = ranker["spans"][number]
            stages = span["seconds_by_stage"]
            rows.append([f"{span['round'] - span['rounds'] + 1:,}–{span['round']:,}", ranker["name"], f"{span['pairs']:,}",
                         time(span["seconds"]), f"{span['units']:.2f}", *(time(stages[stage]) if stages.get(stage) else "–"
                                                                          for stage in ("width", "train")),
                         time(span["mean_seconds"]), f"{span['mean_seconds'] / of_first['mean_seconds']:.2f}",
                         f"{span['checkpoint_bytes'] / 1e6:.1f}", f"{span['resident_bytes'] / 1e6:.0f}"])
    header = ["rounds", "ranker", "pairs", "a round", "in GEMM", "width", "train", "mean since the first", f"over {first['name']}",
              "checkpoint, MB", "process, MB"]
    ends = "; ".join(f"{ranker['name']} " + ("" if ranker["growth"] is None else f"grows {ranker['growth']:.2f} times and ")
                     + f"{'resumes' if ranker['resumes_to_same_bits'] else 'does not resume'} to the same bits"
                     for ranker in found["rankers"])
    return f"{source(name, found['machine'])}; `{found['command']}`; from the third span to the last, {ends}.\n\n" + markdown(header, rows)


def ratio(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def peers_table(name):
    found = read(name)
    rows = [[one["work"], one["version"], time(one["seconds"]), time(one["olrank_seconds"]), ratio(one["ratio"]), one["note"]]
            if "ratio" in one else [one["work"], one["version"], "–", "–", "–", one["note"]] for one in found["rows"]]
    sizes = ", ".join(f"{value:,} {key}" for key, value in found["sizes"].items())
    header = ["work", "PyTorch's version", "PyTorch", "olrank", "ratio", ""]
    return f"{source(name, found['machine'])}; PyTorch {found['torch']}, {found['device']}, one thread; {sizes}\n\n" + \
        markdown(header, rows)


def estimate(value, digits):
    return "–" if value is None else f"{value['mean']:.{digits}f}"


def difference(value, digits):
    """With a star if it differs from 0 at 5 % after Holm's correction."""
    if value is None or "minus_full" not in value:
        return "–"
    against = value["minus_full"]
    spread = "" if against["high"] is None else f" ± {against['high'] - against['mean']:.{digits}f}"
    star = "*" if against["t_p_holm"] is not None and against["t_p_holm"] < 0.05 else ""
    return f"{against['mean']:+.{digits}f}{spread}{star}".replace("-", "−")


def ratios(result):
    if not result["width_ratios"] or result["ranker"].startswith("none"):
        return "–"
    return ", ".join(f"{at['median']:.2f}" for at in result["width_ratios"])


def last_ratios(result, alpha):
    """The 10th percentile, the median and the 90th at the last evaluation."""
    if alpha is None or not result["width_ratios"]:
        return "–"
    last = result["width_ratios"][-1]
    return ", ".join(f"{last[key]:.2f}" for key in ("p10", "median", "p90"))


def ladder_table(name):
    """What each covariance costs and how far it is from the exact one, a line each."""
    found = read(name)
    cells = {cell["ranker"]: cell for cell in found["rankers"]}
    text = []
    for user in found["users"]:
        rows = []
        for result in user["results"]:
            cell, figures = cells[result["ranker"]], result["figures"]
            cost, posterior = figures.get("milliseconds"), figures.get("posterior-bytes")
            rows.append([cell["structure"], last_ratios(result, cell["alpha"]), estimate(figures.get("decisions-differ"), 4),
                         difference(figures.get("false-certain"), 4), difference(figures.get("offline-ndcg"), 4),
                         difference(figures.get("online-cndcg"), 1), estimate(cost, 2),
                         "–" if posterior is None else f"{posterior['mean'] / 1e6:.2f}"])
        cell = found["rankers"][0]
        text.append(f"{source(name, found['machine'])}; {found['data']}, fold {found['folds'][0]}, {user['clicks']} users, m = "
                    f"{cell['width']}, {cell['depth']} layers, {found['rounds']:,} rounds, {len(found['seeds'])} seeds\n\n")
        text.append(markdown(["covariance", "width over exact: 10 %, median, 90 %", "decisions differ", "false certainty − full",
                              "offline NDCG@10 − full", "online cNDCG@10 − full", "ms a round", "posterior, MB"], rows))
    return "".join(text)


def study_table(name):
    found = read(name)
    cells = {cell["ranker"]: cell for cell in found["rankers"]}
    text = []
    for user in found["users"]:
        rows = []
        rounds = []
        for result in user["results"]:
            cell, figures = cells[result["ranker"]], result["figures"]
            rounds = rounds or [f"{at['round']:,}" for at in result["width_ratios"]]
            ndcg, shown, wrong = (figures.get(slug) for slug in ("offline-ndcg", "online-cndcg", "false-certain"))
            posterior = figures.get("posterior-bytes")
            structure = cell["structure"] + (f", ν² = {cell['noise_variance']:g}" if cell["noise_variance"] is not None else "")
            rows.append([structure, str(cell["width"]), "–" if cell["alpha"] is None else f"{cell['alpha']:.3g}",
                         estimate(ndcg, 4), difference(ndcg, 4), estimate(shown, 1), difference(shown, 1),
                         difference(figures.get("regret"), 0), estimate(figures.get("certain-share-mean"), 3), estimate(wrong, 4),
                         difference(wrong, 4), estimate(figures.get("decisions-differ"), 4), ratios(result),
                         "–" if posterior is None else f"{posterior['mean'] / 1e6:.2f}"])
        depth = found["rankers"][0]["depth"]
        text.append(f"{source(name, found['machine'])}; {found['data']}, fold {found['folds'][0]}, {user['clicks']} users, "
                    f"{depth} layers, {found['rounds']:,} rounds, {len(found['seeds'])} seeds\n\n")
        header = ["structure", "m", "α", "offline NDCG@10", "− full", "online cNDCG@10", "− full", "regret − full", "certain, mean",
                  "false", "− full", "decisions differ", f"width over exact, t = {', '.join(rounds)}" if rounds else "width over exact",
                  "posterior, MB"]
        text.append(markdown(header, rows))
    return "".join(text)


def claims_table(letter):
    """The claims of one experiment."""
    def table(name):
        found = read(name)
        rows = []
        for claim in found["claims"]:
            if claim["experiment"] != letter:
                continue
            digits = 3 if letter == "F" or abs(claim["mean"]) < 0.1 else 2
            half = "" if claim["half_width_95"] is None else f" ± {claim['half_width_95']:.{digits}f}"
            theory = f"≤ {claim['at_most']:g}".replace("-", "−") if "at_most" in claim else "–"
            measured = f"{claim['mean']:.{digits}f}{half}".replace("-", "−")
            rows.append([claim["subject"], claim["quantity"], measured, theory, claim["verdict"]])
        return markdown(["what", "figure", "measured", "theory", "verdict"], rows)
    return table


def gaps_table(figure):
    """The means of a figure, a column for each line."""
    def table(name):
        found = next(one for one in read(name)["figures"] if one["name"] == figure)
        at = sorted({point[0] for line in found["lines"] for point in line["points"]})
        rows = []
        for x in at:
            values = ([point[1] for point in line["points"] if point[0] == x] for line in found["lines"])
            rows.append([f"{x:g}", *(f"{value[0]:.3g}" if value else "–" for value in values)])
        return f"{found['subtitle']}\n\n" + markdown([found["x"], *(line["line"] for line in found["lines"])], rows)
    return table


def lengths_table(name):
    """What theory allows as a slope over m and what was measured, a line for each loss."""
    claims = {(claim["subject"], claim["quantity"]): claim for claim in read(name)["claims"]}
    rows = []
    for (subject, quantity), whole in claims.items():
        if not subject.endswith(", noise by query") or quantity != "b: slope over m":
            continue
        long = claims[subject, "b from m = 50 on"]
        slopes = [f"{one['mean']:.2f} ± {one['half_width_95']:.2f}".replace("-", "−") for one in (whole, long)]
        rows.append([f"`{subject.split(',')[0]}`", f"at most {whole['at_most']:g}", *slopes, whole["verdict"]])
    return markdown(["loss", "theory", "measured", "from m = 50 on", "verdict"], rows)


def study_of_generalisation(name):
    """What was run, where."""
    found = read(name)
    data = "; ".join(f"{one['name']}: the {one['queries']} of {one['of']} queries with {one['longest']} documents or more"
                     for one in found["data"])
    return f"{source(name, found['machine'])}; {len(found['seeds'])} seeds. Sizes: {found['sizes']}.{f' {data}.' if data else ''}\n"


def training_table(name):
    found = read(name)
    networks = {"linear": "linear", "mlp": f"m = {found['width']}"}
    rows = [[networks[one["network"]], one["version"], time(one["seconds"]), time(one["olrank_seconds"]), ratio(one["ratio"])]
            for one in found["rows"]]
    header = ["network", "PyTorch's loop", "PyTorch", "olrank", "ratio"]
    return f"[{name}.json](evidence/benchmarks/{name}.json); PyTorch {found['torch']}, one thread; {found['docs']:,} documents × " \
        f"{found['features']}, batches of {found['batch']} queries\n\n" + markdown(header, rows)


def labels_table(name):
    """NDCG@10 of models from labels with their defaults."""
    found = read(name)
    peers = [peer for peer in found["rows"][0] if peer != "data"]
    rows = [[one["data"], *(f"{one[peer]:.4f}".removeprefix("0") for peer in peers)] for one in found["rows"]]
    return f"[{name}.json](evidence/benchmarks/{name}.json); LightGBM {found['lightgbm']}, scikit-learn {found['scikit_learn']}, " \
        f"{found['seeds']} seeds\n\n" + markdown(["data", *peers], rows)


def sizes_of(size):
    return f"{size['docs']} × {size['features']}"


def vowpal_table(name):
    """Rounds and what they show, beside Vowpal Wabbit's."""
    found = read(name)
    rows = []
    for size in found["sizes"]:
        for one in size["players"]:
            spread = one["microseconds"]
            rows.append([sizes_of(size), one["player"], f"{spread['median']:,.0f} µs", f"{spread['min']:,.0f}–{spread['max']:,.0f}",
                         f"{1e6 / spread['median']:,.0f}", ratio(one["over_wabbit"]), f"{one['ndcg']:.3f}", f"{one['clicks']:.3f}"])
        rows += [[sizes_of(size), f"the {text} list", "", "", "", "", "", f"{size[end]:.3f}"] for end, text in (("best", "best"), ("random", "random"))]
    header = ["documents × features", "ranker", "a round", "of all repeats", "rounds/s", "times Vowpal Wabbit's", "NDCG@5", "clicks"]
    return f"{source(name, found['machine'])}; Vowpal Wabbit {found['vowpalwabbit']}; {found['queries']} queries, {found['rounds']:,} rounds, " \
        f"medians of {found['repeats']} repeats\n\n" + markdown(header, rows)


def service_parts_table(name):
    """Each part of a list and of its feedback, beside its floor."""
    found = read(name)
    rows = []
    for size in found["sizes"]:
        for one in size["parts"]:
            rest = one["list"] - one["http"] - one["json"] - one["rank"]
            beside = [f"{one[part]:,.0f} / {one[f'{part}_floor']:,.0f}" for part in ("http", "json", "scores", "order", "log")]
            rows.append([sizes_of(size), f"`{one['ranker']}`", f"{one['list']:,.0f}", *beside[:4], f"{rest:,.0f}",
                         f"{one['list'] - one['rank']:,.0f}", f"{one['feedback']:,.0f}", beside[4]])
    header = ["documents × features", "ranker", "a list", "HTTP", "JSON", "scores", "widths and order", "record and answer",
              "added to `rank()`", "feedback", "log"]
    milliseconds = lambda value: f"{value:.2f} ms"
    half = [[f"`{one['ranker']}`", *(milliseconds(one[figure]) for figure in ("p50_ms", "p99_ms")),
             f"{one['p99_over_p50']:.1f} ({one['least']:.1f}–{one['most']:.1f})",
             *(milliseconds(one[f"health_{figure}"]) for figure in ("p50_ms", "p99_ms"))] for one in found["half_load"]]
    return markdown(header, rows) + "\n" + markdown(
        ["20 × 20, half load", "median", "p99", "p99 / median (least–most)", "`/healthz`, median", "p99"], half)


def interval(values, digits):
    """The mean with the half-width of its 95 % t interval."""
    mean, half = statistics.fmean(values), half_width(values)
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}".replace("-", "−")


def trials_by(found):
    trials = {}
    for trial in found["trials"]:
        trials.setdefault((trial["user"], trial["ranker"]), []).append(trial)
    return trials


FAIR_FIGURES = (("online cNDCG@10", "cndcg", 1), ("offline NDCG@10", "offline", 4), ("size of UF_T", "size", 2),
                ("fair rounds", "fair_share", 4), ("violated orders a list", "violations", 2), ("no fair list", "unrealisable", 0))


def fairness_table(name):
    """What each ranker came to, by user."""
    found = read(name)
    header = ["user", "ranker", *(title for title, _, _ in FAIR_FIGURES)]
    rows = []
    for (user, ranker), trials in trials_by(found).items():
        fields = []
        for _, key, digits in FAIR_FIGURES:
            values = [trial[key] for trial in trials]
            fields.append("–" if None in values else interval(values, digits))
        rows.append([user, f"`{ranker}`", *fields])
    groups = "; ".join(f"{letter}: {one['docs']:,} documents, mean grade {one['mean_grade']:.3f}" for letter, one in found["groups"].items())
    beta = found["beta"]
    return f"{source(name, found['machine'])}; {found['source']}, {found['rounds']:,} rounds, {len(found['seeds'])} seeds; {groups}; " \
        f"β = {', '.join(f'{one:.4f}' for one in (beta if isinstance(beta, list) else [beta]))}, ε = {found['epsilon']:g}\n\n" + markdown(header, rows)


FAIR_PAIRS = (("fairexp", "pairrank"), ("fairexp-blocks", "pairrank-blocks"), ("fairexp", "pairrank-fairco"), ("fairexp", "fairco"),
              ("fairexp-exact", "fairexp"), ("pairrank", "pdgd"), ("pairrank", "dbgd"), ("fairexp", "pdgd"), ("fairco", "pdgd"),
              ("toprank-fairexp", "toprank"), ("pairrank", "toprank"))


def faircompare_table(name):
    """Differences of two rankers on the same seeds."""
    trials = trials_by(read(name))
    rows = []
    for user in dict.fromkeys(user for user, _ in trials):
        for first, second in FAIR_PAIRS:
            if (user, first) not in trials or (user, second) not in trials:
                continue
            fields = []
            for key, digits in (("cndcg", 1), ("offline", 4), ("violations", 2)):
                pairs = [(a[key], b[key]) for a, b in zip(trials[user, first], trials[user, second])]
                fields.append("–" if any(None in pair for pair in pairs) else interval([a - b for a, b in pairs], digits))
            rows.append([user, f"`{first}` − `{second}`", *fields])
    return markdown(["user", "difference", "online cNDCG@10", "offline NDCG@10", "violated orders a list"], rows)


KINDS = {"fairness": fairness_table, "faircompare": faircompare_table, "ops": ops_table, "rounds": rounds_table, "long": long_table, "peers": peers_table, "study": study_table,
         "ladder": ladder_table, "training": training_table, "labels": labels_table, "vowpal": vowpal_table, "service_parts": service_parts_table, "generalisation": study_of_generalisation,
         "lengths": lengths_table,
         **{f"claims{letter}": claims_table(letter) for letter in "ABCDEF"},
         **{f"gaps_{noise}": gaps_table(f"gap-by-length-{noise}") for noise in ("query", "document")}}


def kept_rounds(widths):
    return [at for at in widths if at["round"] in (10, 100, 1000, 10000) or at is widths[-1]]


def machine_of(manifest):
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return {"processor": processor, "cores": len(os.sched_getaffinity(0)), "blas": manifest["blas"],
            "compiler": manifest["compiler"], "date": manifest["started"][:10]}


def add_generalisation(folder, name="generalisation"):
    """Without the path of the data, which is the machine's."""
    found = json.loads((folder / "generalisation.json").read_text())
    machine = machine_of(json.loads((folder / "manifest.json").read_text()))
    write(FILES / f"{name}.json", {"machine": machine, **found})


def add_study(name, folder, with_times):
    study = json.loads((folder / "study.json").read_text())
    manifest = json.loads((folder / "manifest.json").read_text())
    for user in study["users"]:
        for result in user["results"]:
            result["width_ratios"] = kept_rounds(result["width_ratios"])
            if not with_times:
                del result["milliseconds_by_stage"]
                for slug in TIMES:
                    result["figures"].pop(slug, None)
    write(FILES / f"{name}.json", {"machine": machine_of(manifest), **study})


def add_fairness(name, folder):
    """The last figures of each trial with groups; violations are a mean over the whole trial."""
    manifest = json.loads((folder / "manifest.json").read_text())
    one = manifest["fairness"][0]
    trials = []
    for file in sorted(folder.glob("trials/*/*/fold*/seed*/summary.json")):
        summary = json.loads(file.read_text())
        # Users of whom all seeds are there.
        if len(list(folder.glob(f"trials/*/{summary['clicks']}/fold*/seed*/summary.json"))) \
                < len(manifest["seeds"]) * len(manifest["config"]["ranker"]):
            continue
        last, fairness = summary["last"], summary["fairness"]
        curve = [json.loads(line) for line in (file.parent / "curve.jsonl").read_text().splitlines()][1:]
        violations = [point["fairness"]["violations"] for point in curve]
        trials.append({"user": summary["clicks"], "ranker": summary["ranker"], "seed": summary["seed"],
                       "cndcg": last["online"]["cndcg@10"], "offline": last["offline"]["ndcg@10"],
                       "size": abs(fairness["unfairness"]), "fair_share": fairness["fair_share"],
                       "violations": None if None in violations else statistics.fmean(violations),
                       "unrealisable": fairness["unrealisable"],
                       "unfairness": [[point["round"], round(point["fairness"]["unfairness"], 3)] for point in curve],
                       "violations_by_round": None if None in violations else [round(value, 3) for value in violations]})
    users = list(dict.fromkeys(manifest["config"]["clicks"]["models"]))
    rankers = [ranker["name"] for ranker in manifest["config"]["ranker"]]
    trials.sort(key=lambda trial: (users.index(trial["user"]), rankers.index(trial["ranker"]), trial["seed"]))
    origin = manifest["config"]["data"]["source"]
    found = {"machine": machine_of(manifest), "source": origin if origin.startswith("synth:") else pathlib.Path(origin).name.upper(),
             "rounds": manifest["config"]["protocol"]["rounds"], "seeds": manifest["seeds"], "groups": one["groups"],
             "beta": one["beta"], "epsilon": one["epsilon"], "trials": trials}
    write(FILES / f"{name}.json", found)


def add_load(load, names):
    for name in names:
        found = read(name)
        found["machine"]["load"] = load
        write(FILES / f"{name}.json", found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--add-study", nargs=2, metavar=("NAME", "OUT"))
    parser.add_argument("--with-times", action="store_true")
    parser.add_argument("--add-generalisation", nargs="+", metavar=("OUT", "NAME"))
    parser.add_argument("--add-fairness", nargs=2, metavar=("NAME", "OUT"))
    parser.add_argument("--load", nargs="+", metavar=("NUMBER", "NAME"))
    arguments = parser.parse_args()
    if arguments.load:
        add_load(float(arguments.load[0]), arguments.load[1:])
        return
    if arguments.add_study:
        add_study(arguments.add_study[0], pathlib.Path(arguments.add_study[1]), arguments.with_times)
        return
    if arguments.add_generalisation:
        add_generalisation(pathlib.Path(arguments.add_generalisation[0]), *arguments.add_generalisation[1:])
        return
    if arguments.add_fairness:
        add_fairness(arguments.add_fairness[0], pathlib.Path(arguments.add_fairness[1]))


if __name__ == "__main__":
    main()
