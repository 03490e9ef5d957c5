"""Hostile HTTP against `olrank serve`: malformed and ambiguous requests, written by hand and generated from a seed, then floods of
silent and slow connections. Each malformed request gets one 4xx and a closed connection, and the request that follows it on the
same connection, which a lenient parser would take for a second one, is never served. Proper requests in between always succeed.
Before them come proper requests with mutated bodies, which the service takes or refuses where Python's json does."""

import argparse
import http.client
import json
import pathlib
import random
import re
import resource
import socket
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from running_service import RunningService, resident_bytes, threads  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--requests", type=int, default=300)
parser.add_argument("--mutants", type=int, default=1500)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
draw = random.Random(options.seed)

# Every malformed request tries to smuggle this in: nothing else asks for a checkpoint.
SMUGGLED = b"POST /v1/checkpoint HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
BODY = json.dumps({"query": "q", "docs": [{"id": f"d{i}", "features": [i, 1, 0]} for i in range(5)]}).encode()
START, HOST, JSON = b"POST /v1/rank HTTP/1.1\r\n", b"Host: localhost\r\n", b"Content-Type: application/json\r\n"
LENGTH, CHUNKED = b"Content-Length: %d\r\n" % len(BODY), b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def post(*fields, body=BODY, start=START, host=HOST):
    return start + host + JSON + b"".join(fields) + b"\r\n" + body


def get(*fields, target=b"/v1/stats", host=HOST, body=b""):
    return b"GET " + target + b" HTTP/1.1\r\n" + host + b"".join(fields) + b"\r\n" + body


# Each line of the file is a request that is wrong in its length, chunks, lines, fields, host, origin or type.
BY_HAND = [line.encode().decode("unicode_escape").encode("latin-1")
           for line in pathlib.Path(__file__).with_name("hostile_requests.txt").read_text(encoding="ascii").splitlines()]
BY_HAND += [
    post(CHUNKED, body=b"2;" + b"x" * 100_000), get(b"A: " + b"b" * 200_000 + b"\r\n"), get(b"A: b\r\n" * 20_000),
    b"GET / HTTP/1.1\r\n" + b"A" * 100_000, b"\x00" * 5000, b"\xff" * 5000, get(target=b"/" + b"a" * 9000), get(target=b"/" + b"a" * 200_000),
]


def cut_in(data, piece, lowest=0, highest=None):
    at = draw.randrange(lowest, len(data) if highest is None else highest)
    return data[:at] + piece + data[at:]


def generated():
    """A proper request with one thing wrong at a random place."""
    kind = draw.randrange(9)
    chunked = draw.random() < 0.5
    head_end = len(post(CHUNKED if chunked else LENGTH, body=b"")) - 2
    proper = post(CHUNKED, body=CHUNKS) if chunked else post(LENGTH)
    if kind == 0:  # a byte that no head may hold
        return cut_in(proper, bytes([draw.choice([*range(9), 11, 12, *range(14, 32), 127])]), 0, head_end)
    if kind == 1:  # a line end that is none
        return cut_in(proper, draw.choice([b"\n", b"\r", b"\n\r", b"\r\r\n"]), 0, head_end)
    if kind == 2:  # two lengths
        name = bytes(draw.choice([byte, byte ^ 32]) if chr(byte).isalpha() else byte for byte in b"Content-Length")
        return post(CHUNKED if chunked else LENGTH, name + b": %d\r\n" % draw.randrange(1000), body=CHUNKS if chunked else BODY)
    if kind == 3:  # an encoding that is not exactly chunked
        word = cut_in(b"chunked", draw.choice([b"x", b",", b" ", b";", b"\t", b"\"", b"=", b"0"]), 1, 7)
        return post(b"Transfer-Encoding: " + word + b"\r\n", *([LENGTH] if draw.random() < 0.5 else []), body=CHUNKS)
    if kind == 4:  # a folded or nameless line
        line = draw.choice([b" ", b"\t", b":", b" :"]) + bytes(draw.choice(b"abc:-") for _ in range(draw.randrange(1, 30)))
        return get(b"A: b\r\n", line + b"\r\n", LENGTH if draw.random() < 0.5 else CHUNKED, body=CHUNKS)
    if kind == 5:  # a chunk's size that is none
        word = draw.choice([b"", b" ", b"-1", b"g", b"0x5", b"5 5", b"5,5", b"5;", b"5 ;", b"5;=a", b"5;a=", b"5;a=\"b", b"f" * 17, b"5\x00"])
        return post(CHUNKED, body=word + b"\r\n" + CHUNKS)
    if kind == 6:  # a chunk of another size than said
        size = draw.choice([size for size in range(len(BODY) + 60) if size not in (0, len(BODY))])
        return post(CHUNKED, body=b"%x\r\n%s\r\n0\r\n\r\n" % (size, BODY))
    if kind == 7:  # noise
        return bytes(draw.randrange(128, 256) for _ in range(draw.randrange(1, 500))) + b"\r\n\r\n"
    word = draw.choice([b"GET", b"HEAD", b"PUT", b"OPTIONS", b"TRACE"])  # a body where none may be
    return proper.replace(b"POST", word, 1)


def exchange(data):
    """All that comes back before the service closes the connection, and how long it took."""
    begin = time.monotonic()
    received = b""
    with socket.create_connection(ADDRESS, timeout=15) as connection:
        try:
            connection.sendall(data)
        except OSError:
            pass  # already refused
        try:
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:
            pass
    return received, time.monotonic() - begin


def check_proper():
    """A proper request on a connection of its own and one on the old connection."""
    begin = time.monotonic()
    assert len(kept.rank("q", DOCS)["docs"]) == 5
    with service.client(timeout=15) as fresh:
        assert len(fresh.rank("q", DOCS)["docs"]) == 5
    return time.monotonic() - begin


def check_hostile(data):
    received, taken = exchange(data + SMUGGLED)
    shown = data[:300], received[:600]
    assert received.count(b"HTTP/1.1 ") <= 1, ("more than one answer", *shown)
    if received:
        assert received.startswith(b"HTTP/1.1 4"), shown
        assert b"\r\nConnection: close\r\n" in received, shown
        assert b'{"error":' in received or data.startswith(b"HEAD"), shown
    assert taken < 10, ("the connection stayed open", *shown)
    return received[9:12].decode() or "closed"


# Bodies that are mutated, and pieces that tell readers of JSON apart.
BODIES = [json.dumps(one, ensure_ascii=plain).encode() for plain in (False, True) for one in (
    {"query": "größe 😀 \"x\"", "k": 3, "docs": [{"id": f"d{i}", "features": [i, 0.5, -1e-3]} for i in range(4)]},
    {"query": 7, "explore": False, "docs": [{"id": i, "features": {"1": 2.5, "3": i}} for i in range(3)], "user": "u"},
    {"query": "?", "docs": [{"id": "ä\\", "features": [1, 2, 3]}], "incumbent": ["ä\\"]}, {"impression": "0123456789abcdef-1", "clicks": [0, 2]})]
TELLING = [b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"-", b".", b"e", b"0", b"1e999", b"-0", b"00", b"NaN", b"null", b"true", b"\\u0000",
           b"\\ud800", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\x00", b"\n", b"\xef\xbb\xbf", b"[" * 70, b"//", b"'", b"1.", b".5", b"+1",
           b"12345678901234567890"]


def mutant():
    body = draw.choice(BODIES)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at, end = sorted(draw.randrange(len(body) + 1) for _ in range(2))
        other = draw.choice(BODIES)
        body = draw.choice([  # a flipped bit, a part left out, twice, or of another body, a telling piece
            body[:at] + bytes(byte ^ 1 << draw.randrange(8) for byte in body[at:at + 1]) + body[at + 1:], body[:at] + body[end:],
            body[:end] + body[at:], body[:at] + other[draw.randrange(len(other)):][:draw.randrange(30)] + body[at:],
            body[:at] + draw.choice(TELLING) + body[at:]])
    return body


def read_by_python(body):
    """The value of strict JSON (RFC 8259, at most 64 deep); a ValueError for everything else."""
    def no_constant(name):
        raise ValueError(name)
    text = body.decode("utf-8-sig")
    deepest = depth = 0
    for mark in re.sub(r'"(?:[^"\\]|\\.)*"?', "", text):
        depth += (mark in "[{") - (mark in "]}")
        deepest = max(deepest, depth)
    if deepest > 64:
        raise ValueError("deep")
    value = json.loads(text, parse_constant=no_constant)
    json.dumps(value, ensure_ascii=False).encode()  # half a surrogate is no text
    return value


def check_mutant(connection, body):
    path = "/v1/feedback" if b"impression" in body else "/v1/rank"
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    status, text = answer.status, answer.read()
    try:
        value = read_by_python(body)
        assert status in (200, 404, 410, 422), (status, body, text)
    except (ValueError, RecursionError):
        assert status in (400, 422), (status, body, text)  # it may meet an invalid value first
    else:
        if status == 200 and path == "/v1/rank":
            found = json.loads(text)
            assert str(found["query"]) == str(value["query"]), (body, text)
            assert {str(doc["id"]) for doc in found["docs"]} <= {str(doc["id"]) for doc in value["docs"]}, (body, text)
    return status


def flood(count, greeting):
    """Connections that begin a request and never end it."""
    begin = time.monotonic()
    connections, worst = [], 0.0
    for number in range(count):
        connections.append(socket.create_connection(ADDRESS, timeout=15))
        try:
            connections[-1].sendall(greeting)
        except OSError:
            pass
        if number % (count // 8) == 0:
            worst = max(worst, check_proper())
    worst = max(worst, check_proper())
    return connections, worst, time.monotonic() - begin


soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
most = 2000 if hard == resource.RLIM_INFINITY else min(2000, hard - 200)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most + 200), hard))
DOCS = json.loads(BODY)["docs"]
with tempfile.TemporaryDirectory() as folder:
    service = RunningService(pathlib.Path(folder, "state"), "--ranker", "olranknet", "--features", 3, "--width", "6",
                             "--max-body", "100KB", "--request-seconds", "1",
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard)))
    parts = urllib.parse.urlsplit(service.url)
    ADDRESS = (parts.hostname, parts.port)
    kept = service.client(timeout=15)
    assert exchange(post(LENGTH, b"Connection: close\r\n"))[0].startswith(b"HTTP/1.1 200"), "the proper request is refused"
    assert exchange(post(CHUNKED, b"Connection: close\r\n", body=CHUNKS))[0].startswith(b"HTTP/1.1 200"), "as are its chunks"
    before = kept.stats()["fingerprint"]

    mutated, outcomes = http.client.HTTPConnection(*ADDRESS, timeout=15), {}
    for _ in range(options.mutants):
        status = check_mutant(mutated, mutant())
        outcomes[status] = outcomes.get(status, 0) + 1
    mutated.close()
    print(f"{options.mutants} mutated bodies: {outcomes}")
    assert outcomes.keys() >= {200, 400, 422}, "the mutants reach no more than one kind of answer"

    outcomes = {}
    for number, data in enumerate(BY_HAND + [generated() for _ in range(options.requests)]):
        outcome = check_hostile(data)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if number % 4 == 0:
            check_proper()
    print(f"{sum(outcomes.values())} hostile requests: {outcomes}")

    resident = resident_bytes(service.process)
    ranges = b"Range: bytes=0-" + b",0-" * 1500 + b"\r\n"
    received, _ = exchange(get(ranges, b"Connection: close\r\n", target=b"/v1/model"))
    assert len(received) < 10_000, "a request with many ranges multiplies the model"

    for count, greeting in ((64, b""), (500, b""), (most, b""), (most, b"GET /v1/stats HTTP/1.1\r\nHo")):
        connections, worst, taken = flood(count, greeting)
        print(f"{count} connections that send {greeting!r}: opened in {taken:.2f} s, two proper requests took at most {1000 * worst:.0f} ms")
        assert worst < 1.0, f"proper requests took {worst:.2f} s"
        for connection in connections:
            connection.close()

    slow = [socket.create_connection(ADDRESS, timeout=15) for _ in range(200)]
    message, worst = post(LENGTH), 0.0
    for step in range(20):
        for connection in slow:
            try:
                connection.sendall(message[step:step + 1])
            except OSError:
                pass
        worst = max(worst, check_proper())
        time.sleep(0.15)
    ended = 0
    for connection in slow:
        connection.settimeout(0.05)
        try:
            ended += connection.recv(12) in (b"", b"HTTP/1.1 408")
        except ConnectionError:
            ended += 1
        except TimeoutError:
            pass
    print(f"200 slow senders: {ended} refused after the time limit, two proper requests took at most {1000 * worst:.0f} ms")
    assert ended == 200 and worst < 1.0

    grown = resident_bytes(service.process) - resident
    assert grown < 30_000_000, f"the floods left {grown} bytes"
    assert threads(service.process) < 64, threads(service.process)
    assert kept.stats()["fingerprint"] == before
    assert 'route="/v1/checkpoint"' not in kept.metrics(), "a smuggled request was served"
    begin = time.monotonic()
    assert service.stop() == 0, service.messages()
    assert time.monotonic() - begin < 10, "open connections held up the stop"
