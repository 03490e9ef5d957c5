"""The tables of docs/GPU.md, docs/evidence/GPU-RECORD.md and docs/TRAINING.md that hold what a card measured, from
docs/evidence/2026-11-26-h200, docs/evidence/2026-11-27-h100 and docs/evidence/measured.json. tables.json names the rows."""

import json
import pathlib

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


TABLES = {"operations": operations, "targets": targets, "phases": phases, "training": training, "checks": checks}
