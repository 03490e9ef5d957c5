"""evidence.md, from what evidence.json holds."""

from __future__ import annotations

from collections.abc import Sequence


def page(evidence: dict) -> str:
    parts = [head(evidence), outcomes(evidence), targets(evidence), side_by_side(evidence), kernels(evidence), counters(evidence),
             trials(evidence), numbers(evidence)]
    return "\n".join(part for part in parts if part)


def numbers_of(evidence: dict, name: str) -> dict:
    return next((step["numbers"] for step in evidence["steps"] if step["name"] == name), {})


def head(evidence: dict) -> str:
    found = numbers_of(evidence, "machine")
    lines = ["# Evidence" if evidence["kind"] == "evidence" else "# Rehearsal on the CPU with tiny sizes: nothing here is a measurement", ""]
    lines += [f"- started {evidence['started']}, {evidence['seconds']:.0f} s"]
    lines += [f"- olrank {found['version']}, commit {found['commit']}, {found['compiler']}, LibTorch {found['libtorch']}"] if found else []
    for device in found.get("devices", []):
        lines.append(f"- {device['name']}, capability {device['capability']}, {device['memory_bytes'] / 2**30:.0f} GiB")
    card = found.get("card")
    lines += [f"- {'; '.join(f'{key} {value}' for key, value in card.items())}"] if isinstance(card, dict) else [f"- {card}"] if card else []
    lines += [f"- {found['processor']}, {found['threads']} threads, {found['system']}"] if found else []
    met = evidence["targets"]
    lines += ["", f"**{evidence['outcome']}**, {met['met']} targets met, {met['missed']} missed."]
    return "\n".join(lines) + "\n"


def section(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], above: str = "") -> str:
    """A table under its heading; nothing without rows."""
    lines = [f"## {title}\n", *([above + "\n"] if above else []), f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n" if rows else ""


def outcomes(evidence: dict) -> str:
    rows = [(step["name"], step["outcome"], *(met_and_missed(step)), f"{step['seconds']:.1f}", f"{step['limit']:.0f}", step["reason"])
            for step in evidence["steps"]]
    rows += [(name, "not run", "", "", "", "", "") for name in evidence["not run"]]
    return section("Verdict", ("step", "outcome", "targets met", "missed", "seconds", "at most", "reason"), rows)


def met_and_missed(step: dict) -> tuple[int, int]:
    verdicts = [check["ok"] for check in step["checks"]]
    return verdicts.count(True), verdicts.count(False)


def verdict_lines(evidence: dict) -> list[str]:
    """The outcome of each step, its targets, and which of them it missed, for a terminal."""
    lines = []
    for step in evidence["steps"]:
        met, missed = met_and_missed(step)
        lines.append(f"{step['name']:<12} {step['outcome']:<12} {f'{met} of {met + missed} targets met' if met + missed else '':<22} "
                     f"{step['seconds']:>6.1f} s  {step['reason']}".rstrip())
        lines += [f"  {check['what']}: {short(check['measured'])}, not {bound(check)}" for check in step["checks"] if check["ok"] is False]
    return lines + [f"{name:<12} not run" for name in evidence["not run"]]


def bound(check: dict) -> str:
    return f"{'≤' if check['at_most'] else '≥'} {short(check['target'])}"


def targets(evidence: dict) -> str:
    words = {True: "OK", False: "below", None: "not compared"}
    rows = [(step["name"], check["what"], short(check["measured"]), bound(check), words[check["ok"]])
            for step in evidence["steps"] for check in step["checks"]]
    return section("Targets", ("step", "what", "measured", "target", ""), rows)


def side_by_side(evidence: dict) -> str:
    rows = [(row["round"], f"{row['cpu']:.6f}", f"{row['gpu']:.6f}", row["cpu_pairs"], row["gpu_pairs"])
            for row in numbers_of(evidence, "curves").get("curve", [])]
    names = ("CPU", "CPU again") if evidence["kind"] == "rehearsal" else ("CPU", "GPU")
    return section("One trial twice", ("round", *(f"NDCG@10, {name}" for name in names), *(f"pairs, {name}" for name in names)), rows)


def identity(row: dict) -> str:
    return " ".join([row["name"], *(f"{key}={value}" for key, value in row["parameters"].items())])


def kernels(evidence: dict) -> str:
    found = numbers_of(evidence, "bench")
    ceilings = ", ".join(f"{name} {value:.3g}/s" for name, value in found.get("ceilings", {}).items())
    rows = [(identity(row), f"{1e6 * row['seconds']['median']:.1f}", spread(row["seconds"]),
             f"{row['operations']:.3g}", f"{row['bytes']:.3g}", row["ceiling"]["name"], short(row["share"]),
             short(row["libtorch"]["ratio"]) if "libtorch" in row else "")
            for row in found.get("rows", [])]
    header = ("operation", "µs", "spread", "operations", "bytes", "ceiling", "share", "times LibTorch")
    return section("Kernels", header, rows, f"Ceilings: {ceilings}.")


def spread(seconds: dict) -> str:
    return f"{100 * (seconds['max'] / max(seconds['min'], 1e-12) - 1):.0f} %"


def counters(evidence: dict) -> str:
    found = numbers_of(evidence, "counters").get("kernels", [])
    names = list(dict.fromkeys(name for kernel in found for name in kernel if name != "kernel"))
    rows = [(kernel["kernel"], *(kernel.get(name, "") for name in names)) for kernel in found]
    return section("Counters", ("kernel", *names), rows)


def is_trial(value: object) -> bool:
    return isinstance(value, dict) and "seconds_by_stage" in value


def trials(evidence: dict) -> str:
    found = [(step["name"], what, one) for step in evidence["steps"] for what, one in step["numbers"].items() if is_trial(one)]
    stages = list(dict.fromkeys(stage for *_, one in found for stage in one["seconds_by_stage"] or {}))
    rows = [(name, what, *(short(one[key]) for key in ("seconds", "process_seconds", "rounds_per_second", "idle_share")),
             *(short((one["seconds_by_stage"] or {}).get(stage)) for stage in stages)) for name, what, one in found]
    header = ("step", "trial", "seconds", "of the process", "rounds/s", "GPU idle", *(f"{stage}, s" for stage in stages))
    return section("Trials", header, rows)


def numbers(evidence: dict) -> str:
    tables = {"machine": None, "curves": None, "bench": "rows", "counters": "kernels"}  # shown above, whole or this part of them
    rows = [(step["name"], what, short(value)) for step in evidence["steps"] if tables.get(step["name"], "") is not None
            for what, value in step["numbers"].items() if what != tables.get(step["name"]) and not is_trial(value)]
    return section("Numbers", ("step", "what", "value"), rows)


def short(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {short(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(short(inner) for inner in value)
    return str(value)
