"""Compares olrank with what the field computes: estimators of obp, losses of allRank and ULTRA, metrics of ir-measures and allRank, river's replay.

evidence/field.py [--packages FOLDER] [--ultra FILE] [--write]

Run it from the root by a Python that has olrank, scikit-learn, pandas and PyTorch. It installs PINS without their dependencies, which name
versions of years ago, into FOLDER, .deps/field unless told otherwise, and tests/field computes both sides on the same lists. ULTRA_pytorch is in
no package index: --ultra names ultra/learning_algorithm/base_algorithm.py of a checkout at ULTRA_COMMIT, without which its rows stay as they
are in the record. It fails where a difference is above LARGEST; --write keeps the table as the record "field" of
docs/evidence/benchmarks.json, from which evidence/pages.py writes it into docs/evidence/FIELD.md."""

import argparse
import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import types

import records

PINS = ("obp==0.5.7", "allRank==1.4.3", "ir-measures==0.4.3", "pytrec-eval-terrier==0.5.11", "river==0.26.1")
ULTRA_COMMIT = "58c0aa570ee64859cd30ea04221f4deb37cc2258"
# Rounding explains relative differences up to these: scores of models are float32, and gdeval prints five digits.
LARGEST = {"obp": 1e-9, "allRank": 2e-6, "ULTRA_pytorch": 2e-6, "ir-measures": 5e-6, "river": 1e-9}


def install(folder):
    done = folder / "pins"
    if not done.exists() or done.read_text() != " ".join(PINS):
        # obp asks for an older Python; its estimators run in this one as well.
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--ignore-requires-python", "--upgrade",
                        "--target", folder, *PINS], check=True)
        done.write_text(" ".join(PINS))
    sys.path.append(str(folder))
    # Estimators and losses import these by way of pictures and readers of data, and never call them.
    for name in ("matplotlib", "matplotlib.pyplot", "seaborn", "torchvision", "torchvision.transforms", "allrank.utils.file_utils"):
        sys.modules[name] = stub = types.ModuleType(name)
        for attribute in ("transforms", "Compose", "open_local_or_gs", "is_gs_path", "copy_file_to_local"):
            setattr(stub, attribute, None)


def ultra_of(file):
    for name in ("ultra", "ultra.utils"):
        sys.modules[name] = types.ModuleType(name)
    specification = importlib.util.spec_from_file_location("ultra_base", file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.BaseAlgorithm


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", type=pathlib.Path, default=pathlib.Path(".deps/field"))
    parser.add_argument("--ultra", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for name in ("olrank", "sklearn", "pandas", "torch"):
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:  # a folder of this name without a module
            sys.exit(f"{sys.executable} has no {name}: run this by a Python that has it.")
    install(arguments.packages.absolute())
    sys.path.append("tests/field")
    import estimates
    import losses
    import metrics
    import olrank

    rows = []
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):  # ULTRA prints what it computes
        folder = pathlib.Path(name)
        rows += estimates.by_obp(olrank, folder) + estimates.by_river(olrank, folder)
        rows += losses.compare(olrank, arguments.ultra and ultra_of(arguments.ultra), folder)
        rows += metrics.by_ir_measures(olrank) + metrics.by_allrank(olrank)
    versions = {pin.split("==")[0]: pin.split("==")[1] for pin in PINS} | {"ULTRA_pytorch": ULTRA_COMMIT[:8]}
    if not arguments.ultra:
        kept = [one for one in records.read("benchmarks", "field")["rows"] if one["package"] == "ULTRA_pytorch" and one["cases"]]
        rows = kept + rows
    rows = [{**one, "version": versions[one["package"]]} for one in rows]
    rows.sort(key=lambda one: list(versions).index(one["package"]))
    for one in rows:
        print(*(f"{one[key]}" for key in ("package", "theirs", "ours", "cases", "difference")), sep="; ")
    if arguments.write:
        records.write("benchmarks", "field", {"olrank": olrank.__version__, "rows": rows})
    beyond = [one["theirs"] for one in rows if one["cases"] and not one["difference"] <= LARGEST[one["package"]]]
    if beyond:
        sys.exit(f"These differ by more than rounding explains: {', '.join(beyond)}.")


if __name__ == "__main__":
    main()
