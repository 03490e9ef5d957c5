"""The tables of docs/GPU.md, docs/evidence/GPU-RECORD.md and docs/TRAINING.md that hold what a card measured, from
docs/evidence/2026-11-26-h200 and docs/evidence/2026-11-27-h100."""

import json
import pathlib

import tables

EVIDENCE = pathlib.Path("docs/evidence/2026-11-26-h200")
H100 = pathlib.Path("docs/evidence/2026-11-27-h100")
# A run's file: the third of the H200, or one of the H100.
FILES = {**{run: EVIDENCE / f"{run}.json" for run in ("first", "second", "third")}, "h100": H100 / "speed.json", "training": H100 / "training.json"}
# The third run measured other kernels for these, which were not kept. The first run measured those that are in the tree.
NOT_KEPT = ("inverse_factor/apply_factor", "inverse_factor/apply_factor_transposed", "inverse_factor/dual_gram", "widths/full-dual")
SHOWN = ("tangent_kernel/query_kernels", "inverse_factor/apply_factor", "inverse_factor/dual_gram", "inverse_factor/append_pairs",
         "inverse_factor/apply_factor_transposed", "covariance_matrix/pair_kernel", "widths/full-dual", "widths/full-primal", "widths/diagonal",
         "training/step", "training/step_tf32", "persistent_training/train_persistently",
         "largest_curvature/iterate_curvature", "list_loss/list_losses")


def numbers(run, step):
    steps = json.loads(FILES[run].read_text())["steps"]
    return next(one["numbers"] for one in steps if one["name"] == step)


def rows_of(run):
    return {(row["name"], *sorted(row["parameters"].items())): row for row in numbers(run, "bench")["rows"]}


def operations():
    """Each operation at 10,000 pairs, or where pairs do not matter, beside its ceiling and LibTorch."""
    first, third = rows_of("first"), rows_of("third")
    found = []
    for key, row in third.items():
        if row["name"] not in SHOWN or row["parameters"].get("n", 10_000) != 10_000:
            continue
        row = first[key] if row["name"] in NOT_KEPT else row
        seconds, members = row["seconds"]["median"], row["parameters"].get("N", 1)
        name = f"`{row['name']}`" + (f", N = {members}" if members > 1 else "") + (", m = 512" if row["parameters"].get("m") == 512 else "")
        found.append((name, f"{1e6 * seconds * row['share']:.1f}", f"{1e6 * seconds:.1f}", f"{100 * row['share']:.0f} %",
                      f"{row['libtorch']['ratio']:.2f}" if "libtorch" in row else ""))
    return tables.markdown(("operation", "µs at its ceiling", "µs", "share", "times LibTorch"), found)


def targets():
    """What was to be reached, in the first two runs of the H200, in its third, and on an H100."""
    def trial(run):
        found = numbers(run, "trials")
        full, diagonal = ([found[f"{one} {k}"]["seconds"] for k in (1, 2)] for one in ("full", "diagonal"))
        return max(full), sum(full) / sum(diagonal)

    def jobs(run):
        found = numbers(run, "jobs")
        return found["trials"] * found["seconds_of_one"] / found["seconds_of_all"]

    def per_member(run, n):
        row = {members: rows_of(run)["persistent_training/train_persistently", ("J", 20), ("N", members), ("d", 136), ("m", 100), ("n", n)]
               for members in (1, 10)}
        return row[10]["seconds"]["median"] / row[1]["seconds"]["median"]

    rounds = {run: numbers(run, "rounds") for run in ("first", "third", "h100")}
    memory = numbers("second", "memory")["m=1024 dual"]
    rows = [("5,000 rounds, full covariance, seconds", "8", *(f"{trial(run)[0]:.2f}" for run in ("second", "third", "h100"))),
            ("the same over a diagonal one", "1.3", *(f"{trial(run)[1]:.2f}" for run in ("second", "third", "h100")))]
    for n, wanted in ((1000, "0.5"), (10_000, "1.5")):
        stages = [rounds[run][f"full n={n}"] for run in ("first", "third", "h100")]
        rows.append((f"a round after {n:,} pairs, ms", wanted, *(f"{1e3 * one['total']:.2f}" for one in stages)))
        rows.append(("its training, ms", "", *(f"{1e3 * one['train']:.2f}" for one in stages)))
        rows.append(("its share in which the GPU is idle", "10 %", *(f"{100 * one['idle'] / one['total']:.0f} %" for one in stages)))
    for n, wanted in ((10_000, "8"), (1000, "3"), (100, "1.5")):
        rows.append((f"20 steps of ten members over one's, n = {n:,}", wanted, *(f"{per_member(run, n):.2f}" for run in ("first", "third", "h100"))))
    rows.append(("16 trials at once, times the throughput of one", "at least 6", *(f"{jobs(run):.2f}" for run in ("first", "third", "h100"))))
    rows.append((f"m = 1,024 exact, 200 rounds with {memory['pairs']} pairs, seconds", "", f"{memory['seconds']:.2f}", "", ""))
    return tables.markdown(("what", "at most", "H200, first and second run", "H200, third run", "H100"), rows)


def training():
    """A pass of `olrank train` on an H100, over data of MSLR-WEB30K's size."""
    found = numbers("training", "training")
    rows = [(name, f"{1e3 * found[name]:.0f}") for name in ("linear", "linear, lbfgs", "m = 100", "m = 100, batches of 256", "two hidden layers of 100",
                                                           "m = 100, lambdarank", "m = 100, ranknet", "m = 100, listmle")]
    rows += [("m = 100, 16 cores of the same machine", f"{1e3 * found['m = 100 on the CPU']:.0f}"),
             ("m = 100, PyTorch's loop of padded batches on the same card", f"{1e3 * found['PyTorch, padded batches, m = 100']:.0f}")]
    return tables.markdown(("what is trained", "ms"), rows)


def checks():
    """What compute-sanitizer said on an H100."""
    found = json.loads((H100 / "checks.json").read_text())
    def said(row):
        finished = row["ended"] == row["tests"]
        return f"{row['errors']} errors" if finished else f"no error in {row['ended']} of {row['tests']} tests" if not row["reports"] else \
            f"{row['reports']} reports in {row['ended']} of {row['tests']} tests"
    parts = sorted({row["what"] for row in found["sanitizers"]}, key=[row["what"] for row in found["sanitizers"]].index)
    tools = ("memcheck", "racecheck", "synccheck", "initcheck")
    by = {(row["what"], row["tool"]): row for row in found["sanitizers"]}
    return tables.markdown(("tests", *tools), [(part, *(said(by[part, tool]) if (part, tool) in by else "" for tool in tools)) for part in parts])


def phases():
    """Where a step of the one kernel spends its time."""
    found = json.loads((EVIDENCE / "phases.json").read_text())
    rows = [(one["name"], *(f"{value:.1f}" for value in one["microseconds"])) for one in found["phases"]]
    rows.append(("a step", *(f"{sum(one['microseconds'][k] for one in found['phases']):.1f}" for k in range(len(found["n"])))))
    return tables.markdown(("phase", *(f"µs, n = {n:,}" for n in found["n"])), rows)


TABLES = {"operations": operations, "targets": targets, "phases": phases, "training": training, "checks": checks}
