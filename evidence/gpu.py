"""The tables of docs/GPU.md, docs/evidence/GPU-RECORD.md and docs/TRAINING.md that hold what a card measured, from
docs/evidence/2026-11-26-h200, docs/evidence/2026-11-27-h100 and docs/evidence/measured.json. tables.json names the rows."""

import decimal
import json
import pathlib
import re

import records
import tables

EVIDENCE = pathlib.Path("docs/evidence/2026-11-26-h200")
H100 = pathlib.Path("docs/evidence/2026-11-27-h100")
# A run's file: the third of the H200, or one of the H100.
FILES = {**{run: EVIDENCE / f"{run}.json" for run in ("first", "second", "third")}, "h100": H100 / "speed.json", "training": H100 / "training.json"}
ROWS = tables.SPECIFICATIONS["gpu"]


def numbers(run, step):
    steps = json.loads(FILES[run].read_text())["steps"]
    return next(one["numbers"] for one in steps if one["name"] == step)


def rows_of(run):
    return {(row["name"], *sorted(row["parameters"].items())): row for row in numbers(run, "bench")["rows"]}


def operations():
    """Each operation at 10,000 pairs, or where pairs do not matter, beside its ceiling and LibTorch. The third run measured other kernels
    for some, which were not kept: the first run measured those that are in the tree."""
    first, found = rows_of("first"), []
    for key, row in rows_of("third").items():
        if row["name"] not in ROWS["shown"] or row["parameters"].get("n", 10_000) != 10_000:
            continue
        row = first[key] if row["name"] in ROWS["not kept"] else row
        seconds, members = row["seconds"]["median"], row["parameters"].get("N", 1)
        name = f"`{row['name']}`" + (f", N = {members}" if members > 1 else "") + (", m = 512" if row["parameters"].get("m") == 512 else "")
        found.append((name, f"{1e6 * seconds * row['share']:.1f}", f"{1e6 * seconds:.1f}", f"{100 * row['share']:.0f} %",
                      f"{row['libtorch']['ratio']:.2f}" if "libtorch" in row else ""))
    return tables.markdown(("operation", "µs at its ceiling", "µs", "share", "times LibTorch"), found)


def trial(run):
    found = numbers(run, "trials")
    full, diagonal = ([found[f"{one} {k}"]["seconds"] for k in (1, 2)] for one in ("full", "diagonal"))
    return {"seconds": max(full), "over": sum(full) / sum(diagonal)}


def round_of(run, n):
    one = numbers(run, "rounds")[f"full n={n}"]
    return {"total": 1e3 * one["total"], "train": 1e3 * one["train"], "idle": 100 * one["idle"] / one["total"]}


def per_member(run, n):
    seconds = [rows_of(run)["persistent_training/train_persistently", ("J", 20), ("N", members), ("d", 136), ("m", 100), ("n", n)]["seconds"]["median"]
               for members in (1, 10)]
    return {"over": seconds[1] / seconds[0]}


def jobs(run):
    found = numbers(run, "jobs")
    return {"times": found["trials"] * found["seconds_of_one"] / found["seconds_of_all"]}


FIGURES = {"trial": trial, "round": round_of, "members": per_member, "jobs": jobs}


def targets():
    """Shows what was to be reached, in the first two runs of the H200, in its third, and on an H100."""
    rows = [(what, wanted, *(form.format(FIGURES[kind](run, *more)[figure]) for run in (early, "third", "h100")))
            for what, wanted, kind, figure, early, form, *more in ROWS["targets"]]
    memory = numbers("second", "memory")["m=1024 dual"]
    rows.append((f"m = 1,024 exact, 200 rounds with {memory['pairs']} pairs, seconds", "", f"{memory['seconds']:.2f}", "", ""))
    return tables.markdown(("what", "at most", "H200, first and second run", "H200, third run", "H100"), rows)


def training():
    """A pass of `olrank train` on an H100, over data of MSLR-WEB30K's size."""
    found = numbers("training", "training")
    return tables.markdown(("what is trained", "ms"), [(shown, f"{1e3 * found[name]:.0f}") for shown, name in ROWS["trained"]])


def checks():
    """Shows what compute-sanitizer said on an H100."""
    def said(row):
        if row["ended"] == row["tests"]:
            return f"{row['errors']} errors"
        return f"{'no error' if not row['reports'] else str(row['reports']) + ' reports'} in {row['ended']} of {row['tests']} tests"
    by = {(row["what"], row["tool"]): said(row) for row in records.read("measured", "h100-checks")["sanitizers"]}
    tools = ("memcheck", "racecheck", "synccheck", "initcheck")
    return tables.markdown(("tests", *tools), [(part, *(by.get((part, tool), "") for tool in tools)) for part in dict.fromkeys(part for part, _ in by)])


def phases():
    """Where a step of the one kernel spends its time."""
    found = records.read("measured", "h200-phases")
    steps = [*found["phases"], {"name": "a step", "microseconds": [sum(values) for values in zip(*(one["microseconds"] for one in found["phases"]))]}]
    return tables.markdown(("phase", *(f"µs, n = {n:,}" for n in found["n"])), [(one["name"], *(f"{value:.1f}" for value in one["microseconds"])) for one in steps])


# The rule of `--device auto` in jobs/device_choice.cpp has these figures.
RULE = pathlib.Path(__file__).parent.parent / "jobs/device_choice.cpp"


def mean_round(table, covariance, rounds=None):
    """Seconds of a round on one core, from a recorded table of RESULTS."""
    shown = records.read("pages", "RESULTS")["tables"][table]
    column = next(place for place, name in enumerate(shown["header"]) if name.startswith("mean round"))
    row = next(row for row in shown["rows"] if row[0] == covariance and rounds in (None, row[1]))
    return float(row[column].removesuffix(" ms").split(",")[0]) / 1e3


def rule_figures():
    """Each constant of the rule, from the records."""
    train = next(row for row in records.read("benchmarks", "train-peers")["rows"] if (row["network"], row["version"]) == ("mlp", "padded batches"))
    members, docs, passes = numbers("h100", "members"), ROWS["documents of a pass"], numbers("training", "training")
    return {"kCoreRoundAfterThousand": mean_round("first-rounds", "diagonal"),
            "kCoreRoundByGrowth": records.read("benchmarks", "price")["rankers"][0]["spans"][0]["seconds"],
            "kCoreDocument": train["olrank_seconds"] / records.read("benchmarks", "train-peers")["docs"],
            "kGpuStart": numbers("h100", "jobs")["start"], "kGpuThousandRounds": numbers("h100", "jobs")["seconds_of_one"],
            "kGpuFiveThousandRounds": trial("h100")["seconds"], "kTenMembersOverOne": members["N=10"]["seconds"] / members["N=1"]["seconds"],
            "kGainOfJobs": jobs("h100")["times"], "kGpuDocumentLinear": passes["linear"] / docs, "kGpuDocument": passes["m = 100"] / docs}


def check_rule(figures):
    """Fails where the rule has another figure than its record, which it rounds."""
    for name, text in re.findall(r"constexpr double (k\w+) = ([\d.e-]+);", RULE.read_text()):
        unit = decimal.Decimal(1).scaleb(decimal.Decimal(text).as_tuple().exponent)
        if abs(float(text) - figures[name]) > 0.501 * float(unit):
            raise SystemExit(f"jobs/device_choice.cpp: {name} is {text}, but the record says {figures[name]:.4g}")


def devices():
    """Seconds of the same work on a core and on a card, and how many trials or passes each does in an hour."""
    check_rule(rule_figures())
    found, members, passes = rule_figures(), numbers("h100", "members"), numbers("training", "training")
    core, docs = mean_round, ROWS["documents of a pass"]
    work = [("1,000 rounds, exact covariance", 1000 * core("first-rounds", "full (dual form)"), found["kGpuThousandRounds"]),
            ("5,000 rounds, exact covariance", 5000 * core("epyc-rounds", "full", "5,000"), found["kGpuFiveThousandRounds"]),
            ("5,000 rounds, diagonal covariance", 5000 * core("epyc-rounds", "diagonal", "5,000"),
             numbers("h100", "trials")["diagonal 1"]["seconds"]),
            ("1,000 rounds, ten members", 10 * 1000 * core("first-rounds", "ensemble of one"), members["N=10"]["seconds"]),
            ("a pass of `train` over 2.3 M documents", docs * found["kCoreDocument"], passes["m = 100"])]
    rows = [(name, f"{on_core:.3g}" if on_core < 1000 else f"{on_core:,.0f}", f"{on_card:.3g}", f"{3600 / on_core:,.0f}", f"{3600 / on_card:,.0f}")
            for name, on_core, on_card in work]
    return tables.markdown(("m = 100, d = 136", "a core, s", "an H100, s", "an hour on a core", "an hour on an H100"), rows)


TABLES = {"devices": devices, "operations": operations, "targets": targets, "phases": phases, "training": training, "checks": checks}
