"""Experiment folders in the format of `olrank run`, with made-up numbers, for tests of programs that read them."""

import itertools
import json
import math
import pathlib
import random

STAGES = ("score", "width", "rank", "click", "observe", "train", "eval")


def ranker(name, kind="pairrank", **settings):
    return {"name": name, "kind": kind, "network": "linear", "width": 100, "depth": 2, "covariance": "full", "members": 2,
            "alpha": 0.1, **settings}


def manifest(rankers, users, folds, seeds, rounds, **changes):
    protocol = {"name": "paper", "rounds": rounds, "cutoff": 10, "eval_every": max(1, rounds // 50), "seeds": seeds,
                "empty_queries": "zero", "discount": 0.9995, "cosine": "none", **changes.get("protocol", {})}
    data = {"source": "made-up", "train": "", "vali": "", "test": "", "folds": folds, "normalise": "query-minmax",
            "evaluate": "test", "cache": "auto", "max_memory": "auto", **changes.get("data", {})}
    clicks = {"models": users, "kind": "dependent", "stop": "after-click", "noise": 0.0}
    part = {"queries": 100, "docs": 2000, "features": 10, "max_grade": 4, "fingerprint": changes.get("fingerprint", "0f")}
    return {"version": "0.1.0", "commit": "0123456789ab", "compiler": "GNU 12.2.0", "started": "2026-01-01T00:00:00Z",
            "command": "olrank run made-up.toml", "recorded": False,
            "trials": len(rankers) * len(users) * len(folds) * len(seeds),
            "config": {"data": data, "protocol": protocol, "clicks": clicks, "ranker": rankers, "run": {}},
            "protocol": "paper", "deviations": changes.get("deviations", []), "seeds": seeds, "device": "cpu",
            "libtorch": "2.11.0", "cuda": None, "blas": "MKL",
            "data": {"source": data["source"], "folds": [{"fold": fold, "train": part, "test": part} for fold in folds]},
            "conventions": {"offline": "gain 2^grade - 1", "empty_queries": "zero", "online": "an empty query counts 0"}}


def curve(height, rounds, evaluations, coins, certain=True, extras=False):
    """Curve lines that climb to about `height`."""
    discounted, seconds, lines = 0.0, 0.0, []
    for number in range(evaluations):
        done = round(rounds * number / (evaluations - 1))
        climb = 1 - math.exp(-6 * done / rounds)
        offline = 0.15 + (height - 0.15) * climb + coins.gauss(0, 0.004)
        discounted += offline * rounds / evaluations
        seconds += 0.001 * (1 + number / evaluations)
        known = certain and number > 0
        lines.append({
            "round": done, "pairs": 2 * done, "offline": {"ndcg@10": offline},
            "online": {"ndcg@10": 0.9 * offline, "cndcg@10": discounted, "regret": int(1500 * done * (1.2 - height))},
            "certain_share": 0.5 + 0.45 * climb if known else None, "blocks": 5 + 40 * climb if known else None,
            "block_size": {str(rank): (1 + rank * (1 - climb) if known else None) for rank in (1, 5, 10)},
            "cosine": 0.9 * climb if extras else None,
            "width_ratio": {"median": 1.4, "p10": 1.1, "p90": 2.0} if extras and known else None, "drift": 1e-15,
            "seconds": {stage: seconds * (0.3 if stage == "train" else 0.1) for stage in STAGES}})
    return lines


def summary(identity, lines):
    last = {key: value for key, value in lines[-1].items() if key != "seconds"}
    seconds = lines[-1]["seconds"]
    return {**dict(zip(("ranker", "clicks", "fold", "seed"), identity)), "rounds": last["round"], "last": last,
            "area": {"offline": 0.3, "online": 0.3}, "parameters": 136, "seconds": sum(seconds.values()),
            "rounds_per_second": last["round"] / sum(seconds.values()), "seconds_by_stage": seconds,
            "peak_memory_bytes": 200_000_000, "result_fingerprint": "00", "version": "0.1.0", "commit": "0123456789ab",
            "recipe": {"version": "0.1.0"}}


def trial_folder(root, name, user, fold, seed):
    return pathlib.Path(root) / "trials" / name / user / f"fold{fold}" / f"seed{seed}"


def write_experiment(root, rankers=None, users=("perfect",), folds=(1,), seeds=(1, 2, 3), rounds=1000, evaluations=11,
                     height=None, extras=False, fold_spread=0.03, unfinished=(), not_started=(), **changes):
    """Trials in `unfinished` stop halfway, those in `not_started` are missing; both hold (ranker, user, fold, seed)."""
    root = pathlib.Path(root)
    rankers = [ranker("pairrank"), ranker("pdgd", "pdgd")] if rankers is None else rankers
    root.mkdir(parents=True, exist_ok=True)
    whole = manifest(rankers, list(users), list(folds), list(seeds), rounds, **changes)
    (root / "manifest.json").write_text(json.dumps(whole))
    for (number, settings), user, fold, seed in itertools.product(enumerate(rankers), users, folds, seeds):
        identity = (settings["name"], user, fold, seed)
        if identity in not_started:
            continue
        shared = random.Random(f"{user} {fold} {seed}").gauss(0, fold_spread)
        coins = random.Random(repr(identity))
        top = 0.45 - 0.02 * number if height is None else height[number]
        lines = curve(top + shared, rounds, evaluations, coins, settings["kind"] != "pdgd", extras)
        folder = trial_folder(root, *identity)
        folder.mkdir(parents=True)
        kept = lines[:len(lines) // 2] if identity in unfinished else lines
        (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
        if identity not in unfinished:
            (folder / "summary.json").write_text(json.dumps(summary(identity, lines)))
    return root


def change_evaluations(trial, change):
    """Calls change(number, evaluation) for each of a trial's curve, of which the last is in its summary; returns the evaluations."""
    points = [json.loads(line) for line in (trial / "curve.jsonl").read_text().splitlines()]
    for number, point in enumerate(points):
        change(number, point)
    (trial / "curve.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    whole = json.loads((trial / "summary.json").read_text())
    whole["last"] |= {key: value for key, value in points[-1].items() if key != "seconds"}
    (trial / "summary.json").write_text(json.dumps(whole))
    return points


def write_study(root, structures=("full", "diagonal", "none", "ensemble-2"), widths=(16, 32), **changes):
    """An experiment with a study of these structures, of which the later ones are worse."""
    cells = [{"ranker": f"{structure}-m{width}-L2", "structure": structure, "width": width, "depth": 2,
              "noise_variance": 0.1 if structure.startswith("ensemble") else None,
              "alpha": None if structure.startswith(("ensemble", "none")) else 0.1}
             for width in widths for structure in structures]
    heights = [0.45 - 0.03 * structures.index(cell["structure"]) for cell in cells]
    write_experiment(root, [ranker(cell["ranker"]) for cell in cells], **{"height": heights, **changes})
    (pathlib.Path(root) / "study.json").write_text(json.dumps({"alpha": "given", "calibration": None, "rankers": cells}))
    return root
