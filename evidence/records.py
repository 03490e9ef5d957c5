"""The records of docs/evidence: what was measured, by family and name.

evidence/records.py FAMILY NAME FILE    takes the JSON of a file as the record docs/evidence/FAMILY.json has under NAME

Families are pages (tables and figures whose raw results are not kept), benchmarks, choosing, papers, and measured (single runs)."""

import json
import pathlib
import sys

FOLDER = pathlib.Path("docs/evidence")
LOADED = {}


def family(name):
    """All records of a family, by name."""
    if name not in LOADED:
        path = FOLDER / f"{name}.json"
        LOADED[name] = json.loads(path.read_text()) if path.exists() else {}
    return LOADED[name]


def read(of, name):
    """The record; none if there is none."""
    return family(of).get(name)


def write(of, name, record):
    records = family(of)
    records[name] = record
    parts = [f"{json.dumps(key)}: {dump(one)}" for key, one in sorted(records.items())]
    (FOLDER / f"{of}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


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


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], json.loads(pathlib.Path(sys.argv[3]).read_text()))
