"""Makes the rows of the table of agreement. evidence/field.py runs it."""


def row(package, theirs, ours, pairs, note=""):
    """Says the largest relative difference over pairs of their value and ours; without pairs there is a note alone."""
    pairs = list(pairs)
    differences = [abs(a - b) / max(1.0, abs(b)) for a, b in pairs]
    return {"package": package, "theirs": theirs, "ours": ours, "cases": len(pairs), "difference": max(differences, default=None), "note": note}
