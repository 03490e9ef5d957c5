"""Reads, writes and evaluates model files with Python's standard library only, as a reference for the program."""

import json
import math
import struct


def as_float(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    metadata.pop("olrank_checksum", None)  # of the file, not of its model
    values = data[8 + length:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", values[begin:end])))
    return tensors, metadata


def write_safetensors(path, tensors, metadata):
    header, values = {"__metadata__": metadata}, b""
    for name, (shape, numbers) in tensors.items():
        end = len(values) + 4 * len(numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(values), end]}
        values += struct.pack(f"<{len(numbers)}f", *numbers)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)


def layers_of(tensors, metadata):
    """The layers of each member: rows of weights, and biases."""
    members = []
    prefixes = [f"members.{n}." for n in range(int(metadata["members"]))] if "members" in metadata else [""]
    for prefix in prefixes:
        if metadata["architecture"] == "additive":
            weight = [w for name in ("linear", "cosines", "products") for w in tensors.get(f"{prefix}{name}.weight", (None, []))[1]]
            members.append([([weight], [0.0])])
            continue
        if metadata["architecture"] == "linear":
            names = [prefix + "linear"]
        else:
            names = [f"{prefix}layers.{l}" for l in range(int(metadata["depth"]))]
        layers = []
        for name in names:
            (rows, columns), weight = tensors[name + ".weight"]
            bias = tensors.get(name + ".bias", (None, [0.0] * rows))[1]
            layers.append(([weight[r * columns:(r + 1) * columns] for r in range(rows)], bias))
        members.append(layers)
    return members


def network_score(layers, scale, x):
    for number, (weight, bias) in enumerate(layers):
        x = [math.fsum(w * v for w, v in zip(row, x)) + b for row, b in zip(weight, bias)]
        if number + 1 < len(layers):
            x = [max(v, 0.0) for v in x]
    return scale * x[0]


def scaled(docs):
    low = [min(column) for column in zip(*docs)]
    high = [max(column) for column in zip(*docs)]
    return [[as_float((x - l) / (h - l)) if h > l else 0.0 for x, l, h in zip(doc, low, high)] for doc in docs]


def normalised(normalisation, docs, cosines=0, products=()):
    """The network's inputs for one query's documents, rounded to float32 like the program's. `cosines` is 3 for additive
    models, which may have products of pairs of inputs."""
    if cosines:
        docs = scaled(normalised(normalisation, docs))
        return [doc + [as_float(math.cos(k * math.pi * x)) for k in range(2, 2 + cosines) for x in doc] +
                [as_float((2 * doc[i] - 1) * (2 * doc[j] - 1)) for i, j in products] for doc in docs]
    kind = normalisation["kind"]
    kept = normalisation.get("kept", range(normalisation["features"]))
    if kind.endswith("zscore"):
        squeeze = (lambda x: math.copysign(math.log1p(abs(x)), x)) if kind == "log1p-zscore" else (lambda x: x)
        means, scales = normalisation["means"], normalisation["scales"]
        return [[as_float((squeeze(doc[f]) - means[f]) * scales[f]) for f in kept] for doc in docs]
    docs = [[doc[f] for f in kept] for doc in docs]
    return docs if kind == "none" else scaled(docs)


def model_scores(members, scale, normalisation, queries, cosines=0, products=()):
    scores = []
    for docs in queries:
        for inputs in normalised(normalisation, docs, cosines, products):
            scores.append(math.fsum(network_score(layers, scale, inputs) for layers in members) / len(members))
    return scores


def read_queries(path, features):
    """Raw documents of each query, in the order of the file; queries are contiguous."""
    queries, last = [], None
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        doc = [0.0] * features
        for word in words[2:]:
            number, value = word.split(":")
            doc[int(number) - 1] = as_float(float(value))
        if words[1] != last:
            queries.append([])
            last = words[1]
        queries[-1].append(doc)
    return queries
