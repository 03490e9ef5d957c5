"""Malformed requests, generated from fixed seeds: each gets a 4xx with a JSON error, which names a field unless the request is no
HTTP. Afterwards the service is alive and unchanged: no more threads, no leaked memory, nothing learned."""

import argparse
import json
import pathlib
import random
import socket
import tempfile
import urllib.parse

from running_service import RunningService, resident_bytes, threads, wait_until

parser = argparse.ArgumentParser()
parser.add_argument("--requests", type=int, required=True)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
draw = random.Random(options.seed)
FEATURES, TOKEN, BODY = 6, "the-token", 200_000


def good_rank():
    return {"query": "q", "docs": [{"id": f"d{i}", "features": [draw.random() for _ in range(FEATURES)]} for i in range(4)]}


def wrong_value():
    return draw.choice([None, True, -1, 1.5, "x", [], {}, [[]], {"a": {"b": []}}, 10**30, "", [1, [2, [3]]]])


def broken_json():
    text = json.dumps(good_rank())
    kind = draw.randrange(6)
    if kind == 0:
        return text[:draw.randrange(len(text))]
    if kind == 1:
        return text + draw.choice(["}", "]", "x", "{}", ",", "\x00"])
    if kind == 2:
        return draw.choice("[{") * draw.randrange(1, 20_000)
    if kind == 3:
        return '{"query":' * draw.randrange(1, 5000) + "1"
    if kind == 4:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(300))).decode("latin-1")
    at = draw.randrange(len(text))
    return text[:at] + draw.choice('"{}[]:,\\\x01') + text[at + 1:] + "!"


def wrong_numbers():
    body = json.dumps(good_rank())
    number = draw.choice(["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "1e39", "0x10", "1.", ".5", "+1", "01", "1e", "--1",
                          "9" * 500, "null", "true", '"1"', "nan", "1_000"])
    return body.replace("[", "[" + number + ",", 1) if draw.random() < 0.1 else body.replace(
        '"features": [', '"features": [' + number + ", ", 1)


def wrong_shapes():
    request = good_rank()
    kind = draw.randrange(8)
    doc = draw.choice(request["docs"])
    if kind == 0:
        doc["features"] = doc["features"][:draw.randrange(FEATURES)]
    elif kind == 1:
        doc["features"] += [0.5] * draw.randrange(1, 20)
    elif kind == 2:
        request["docs"].append(dict(draw.choice(request["docs"])))
    elif kind == 3:
        del request[draw.choice(list(request))]
    elif kind == 4:
        del doc[draw.choice(list(doc))]
    elif kind == 5:
        doc["features"] = {draw.choice(["0", "-1", "x", str(FEATURES + 1), "1.0", "", "99999999999999999999"]): 1}
    elif kind == 6:
        request[draw.choice(["qurey", "doc", "Query", "__proto__", "k "])] = 1
    else:
        where = draw.choice([request, doc])
        key = draw.choice(list(where))
        value = wrong_value()
        # An integer is a valid query or document ID, and an empty object means that all features are zero.
        if (key in ("query", "id") and (value in ("x",) or value is not True and isinstance(value, int) and value < 10**20)) or (
                key == "features" and value == {}) or (key == "docs" and value == "x" and False):
            value = None
        where[key] = value
    return json.dumps(request)


def wrong_options():
    request = good_rank()
    key = draw.choice(["k", "explore"])
    value = wrong_value()
    request[key] = "no" if key == "explore" and value is True else value
    return json.dumps(request)


def wrong_feedback():
    return json.dumps(draw.choice([
        {"impression": f"{draw.getrandbits(64):016x}-{draw.randrange(9)}", "clicks": []},
        {"impression": "unknown", "clicks": [0]},
        {"impression": IMPRESSION, "clicks": [99]},
        {"impression": IMPRESSION, "clicks": ["nobody"]},
        {"impression": IMPRESSION, "clicks": [0, 0]},
        {"impression": IMPRESSION, "clicks": [-1]},
        {"impression": IMPRESSION, "clicks": [0.5]},
        {"impression": IMPRESSION, "clicks": [wrong_value()] * 3 + [None]},
        {"impression": IMPRESSION},
        {"clicks": []},
        {"impression": 7, "clicks": []},
        {"impression": IMPRESSION, "clicks": [0], "more": 1},
        {"impression": "x" * 5000, "clicks": []},
        [IMPRESSION, [0]],
    ]))


def request_of(path, body, token=TOKEN, method="POST", length=None):
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data) if length is None else length}\r\n"
    if token is not None:
        head += f"Authorization: {token if ' ' in token else 'Bearer ' + token}\r\n"
    return head.encode() + b"\r\n" + data


def malformed():
    """Bytes to send, and whether they are no HTTP."""
    kind = draw.randrange(20)
    if kind < 4:
        return request_of("/v1/rank", broken_json()), False
    if kind < 7:
        return request_of("/v1/rank", wrong_numbers()), False
    if kind < 12:
        return request_of("/v1/rank", wrong_shapes()), False
    if kind < 13:
        return request_of("/v1/rank", wrong_options()), False
    if kind < 16:
        return request_of("/v1/feedback", wrong_feedback()), False
    if kind == 16:
        token = draw.choice([None, "", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "Basic " + TOKEN, "bearer  " + TOKEN])
        return request_of("/v1/rank", json.dumps(good_rank()), token), False
    if kind == 17:
        path = draw.choice(["/", "/v1", "/v1/ranks", "/v1/rank/", "/v2/rank", "/../etc/passwd", "/" + "a" * 9000, "/%00", "/v1/rank%20"])
        return request_of(path, "{}"), False
    if kind == 18:
        oversized = draw.choice([b" " * (BODY + 1 + draw.randrange(BODY)), b"[" * (BODY + 1)])
        return request_of("/v1/rank", oversized), False
    return draw.choice([
        b"\r\n\r\n", b"GET\r\n\r\n", b"\x00" * 50 + b"\r\n\r\n", b"POST /v1/rank HTTP/1.1\r\n\r\n", b"A" * 70_000,
        b"POST /v1/rank HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST /v1/rank HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n",
        b"GET /v1/stats HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 9 + b"\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"PUT /v1/rank HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\n{}", b"GET / HTTP/1.1\r\nRange: bytes=9-1\r\n\r\n",
    ]), True


def exchange(data):
    """The response, read until the service closes the connection."""
    with socket.create_connection(ADDRESS, timeout=20) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the service has already rejected it
        received = b""
        try:
            while piece := connection.recv(65536):
                received += piece
        except ConnectionResetError:
            pass
        return received


def check(data, no_http):
    received = exchange(data)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 4"), (data[:3000], received[:500])
    error = json.loads(body)["error"]
    status = int(head.split()[1])
    assert error["status"] == status and error["message"], (data[:300], body)
    if data.startswith(b"POST /v1/") and status in (400, 422) and not no_http:
        assert error["field"], (data[:500], body)
    return status


with tempfile.TemporaryDirectory() as folder:
    token_file = pathlib.Path(folder, "token")
    token_file.write_text(TOKEN + "\n")
    service = RunningService(pathlib.Path(folder, "state"), "--ranker", "olranknet", "--features", FEATURES, "--width", "6",
                             "--token-file", token_file, "--max-body", BODY, "--request-seconds", "2")
    parts = urllib.parse.urlsplit(service.url)
    ADDRESS = (parts.hostname, parts.port)
    client = service.client(token=TOKEN)
    IMPRESSION = client.rank("q", good_rank()["docs"])["impression"]
    before = client.stats()
    counts = {}
    warm = resident = 0
    for number in range(options.requests):
        outcome = check(*malformed())
        counts[outcome] = counts.get(outcome, 0) + 1
        if number == options.requests // 2:
            warm = resident_bytes(service.process)
    resident = resident_bytes(service.process)
    # A sender that never finishes holds a connection only until the request deadline.
    slow = [socket.create_connection(ADDRESS, timeout=20) for _ in range(8)]
    for connection in slow:
        connection.sendall(b"POST /v1/rank HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
    for connection in slow:
        answer = connection.recv(65536)
        assert b" 4" in answer[:20], answer
        connection.close()
    # The impression that malformed requests named still awaits its feedback.
    after = client.stats()
    assert after["fingerprint"] == before["fingerprint"] and after["log_rounds"] == 0, (before, after)
    assert after["impressions"] == before["impressions"], "a malformed request was ranked"
    assert client.feedback(IMPRESSION, [0])["round"] == 1
    assert client.is_ready()
    client.close()
    wait_until(lambda: threads(service.process) <= 70, 10, "threads were left behind")
    # Thread buffers grow to the largest request's size and stay there.
    assert resident - warm < 10_000_000, f"the second half grew memory by {resident - warm} bytes"
    assert service.stop() == 0, service.messages()
    assert len(counts) >= 7, counts
    print(f"{options.requests} malformed requests: {counts}; the second half grew memory by {resident - warm} bytes")
