"""Client for `olrank serve`: ranks documents, sends clicks, downloads the model. Uses only the standard library.

    client = Client("http://127.0.0.1:8080")
    ranking = client.rank("jacket", [{"id": "a", "features": [0.1, 2.0]}, {"id": "b", "features": {"2": 1.0}}])
    client.feedback(ranking["impression"], clicks=["b"])

A service with groups (`--groups`) takes each document's group, "A", "B", …, and tells the unfairness after the list:

    ranking = client.rank("jacket", [{"id": "a", "features": [0.1, 2.0], "group": "A"}, ...])
    print(ranking["unfairness"], ranking["fair"])

Each client holds one connection and is not thread-safe. Run this file for an example: `python3 olrank_client.py --help`.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from typing import Any


class ServiceError(Exception):
    """A request that the service rejected: HTTP `status`, offending `field` of the request, `message`, the `code` that tells
    errors of one status apart (empty if there is none), and `retry_after`, the seconds after which the same request may succeed
    (None if it will not)."""

    def __init__(self, status: int, field: str, message: str, code: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{status} {field}: {message}" if field else f"{status}: {message}")
        self.status, self.field, self.message, self.code, self.retry_after = status, field, message, code, retry_after


class Client:
    """`timeout` bounds the seconds until the answer of a request begins, with the connection and a second try if the service has closed
    an idle connection, and then each wait for more of it. After them a TimeoutError names the request. A page that waits for rank()
    needs a small one, and shows its own order then. `ca` is a file of certificates that may sign that of a proxy with https, in
    place of the system's, and `surface` names one of a process with several."""

    def __init__(
        self, url: str, token: str | None = None, timeout: float = 30.0, ca: str | None = None, surface: str | None = None
    ) -> None:
        if not timeout > 0:
            raise ValueError(f"timeout must be above 0 seconds, not {timeout}")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"'{url}' is not a URL like http://127.0.0.1:8080")
        secure = parts.scheme == "https"
        if ca and not secure:
            raise ValueError(f"ca is for a URL of https, not '{url}'")
        address, port = parts.hostname, parts.port or (443 if secure else 80)
        tls = None
        if secure:
            import ssl  # which not every Python has
            tls = ssl.create_default_context(cafile=ca)

        def connect() -> http.client.HTTPConnection:
            return http.client.HTTPSConnection(address, port, context=tls) if secure else http.client.HTTPConnection(address, port)

        self._connect = connect
        self._timeout = timeout
        self._place = parts.path.rstrip("/") + (f"/surface/{surface}" if surface else "")
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def rank(
        self,
        query: str,
        docs: list[Any],
        k: int | None = None,
        explore: bool | None = None,
        groups: dict[Any, str] | None = None,
        incumbent: list[Any] | None = None,
        user: str | int | None = None,
        certainty: bool | None = None,
        allow_unknown: bool | None = None,
        query_features: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Ranks `docs`: a list of {"id", "features"}, where features is a list of all values or maps numbers (strings, from
        "1") to values. Documents that put_docs() has stored need only the features that depend on the query, or none: an ID alone
        then stands for {"id": ID}. With `allow_unknown` documents that are not stored are ranked by defaults, not refused.
        `query_features` has those of the query, in a service with a schema. Returns the response: "docs" with scores, best first;
        "impression", the ID for feedback; "certain", for each shown rank the ranks that it certainly precedes. In a service with
        groups each document also has a "group", "A", "B", …, in `docs` or in `groups`, which maps IDs to them; the response then
        has "unfairness" and "fair". `incumbent` has the IDs of all documents in the order that you would show yourself, and `user`
        says whose lists belong to one arm; in a service with arms the response has "arm", whose list it is. A response of more
        than 100 documents has "certain" and "probability" only if `certainty` is true."""
        docs = [doc if isinstance(doc, dict) else {"id": doc} for doc in docs]
        if groups is not None:
            docs = [{**doc, "group": groups[doc["id"]]} for doc in docs]
        request = {"query": query, "docs": docs, "k": k, "explore": explore, "incumbent": incumbent, "user": user, "certainty": certainty,
                   "allow_unknown": allow_unknown, "query_features": query_features}
        return self._json("POST", "/v1/rank", request)

    def put_docs(self, docs: list[dict[str, Any]]) -> list[int]:
        """Stores documents, each {"id", "features"} and perhaps a "version" above that before, so that rank() needs only their IDs.
        Returns their versions once they are durable: all are stored, or none."""
        lines = "\n".join(json.dumps(doc, separators=(",", ":")) for doc in docs)
        return self._json("PUT", "/v1/docs", lines)["versions"]

    def doc(self, id: str | int) -> dict[str, Any]:
        """A stored document."""
        return self._json("GET", "/v1/docs/" + urllib.parse.quote(str(id), safe=""))

    def delete_docs(self, ids: list[Any]) -> int:
        """Deletes stored documents; lists that have shown them are still learned. Returns how many there were."""
        return self._json("DELETE", "/v1/docs", {"ids": ids})["deleted"]

    def rerank(
        self,
        query: str,
        response: dict[str, Any],
        k: int | None = None,
        explore: bool | None = None,
        user: str | int | None = None,
        certainty: bool | None = None,
    ) -> dict[str, Any]:
        """Ranks the hits of `response`, the answer of OpenSearch or Elasticsearch with a feature log. Returns what rank() does."""
        request = {"query": query, "response": response, "k": k, "explore": explore, "user": user, "certainty": certainty}
        return self._json("POST", "/v1/rerank", request)

    def feedback(
        self,
        impression: str,
        clicks: list[str] | list[int] | None = None,
        attempts: int = 1,
        pause: float = 0.2,
        ids: list[str] | list[int] | None = None,
        ranks: list[int] | None = None,
    ) -> dict[str, Any]:
        """Sends clicks: document IDs (strings) or ranks (integers from 0); [] if nothing was clicked. Documents whose IDs are integers
        need `ids`, or `ranks`, in place of `clicks`. Repeating feedback is harmless, so `attempts` > 1 can bridge a restart of the
        service, or the time in which it still writes the same feedback."""
        return self._feedback({"impression": impression, "clicks": clicks, "ids": ids, "ranks": ranks}, attempts, pause)

    def events(
        self, impression: str, events: list[dict[str, Any]], attempts: int = 1, pause: float = 0.2
    ) -> dict[str, Any]:
        """Sends events to a service with a window (`--window`): each has the "id" or the "rank" of its document, and may have a
        "type" ("click") and the time "at", in milliseconds since 1970. Attempts are as in feedback()."""
        return self._feedback({"impression": impression, "events": events}, attempts, pause)

    def _feedback(self, request: dict[str, Any], attempts: int, pause: float) -> dict[str, Any]:
        attempt = 0
        while True:
            try:
                return self._json("POST", "/v1/feedback", request)
            except (OSError, ServiceError) as error:
                attempt += 1
                if attempt >= attempts or isinstance(error, ServiceError) and error.retry_after is None:
                    raise
                time.sleep(max(pause, getattr(error, "retry_after", None) or 0))

    def stats(self) -> dict[str, Any]:
        return self._json("GET", "/v1/stats")

    def arms(self) -> dict[str, Any]:
        """How the arms of a service with arms (`--arms`) compare."""
        return self._json("GET", "/v1/arms")

    def schema(self) -> dict[str, Any]:
        """Returns what requests send, as TOML, and under "next" the schema that the service is learning, until it takes over."""
        return self._json("GET", "/v1/schema")

    def put_schema(self, toml: str, dry_run: bool = False) -> dict[str, Any]:
        """Changes the schema of the running service, or with `dry_run` says what would change. The service learns its log again
        meanwhile, and takes requests in both forms."""
        return self._json("PUT", "/v1/schema" + ("?dry_run=true" if dry_run else ""), toml)

    def checkpoint(self) -> dict[str, Any]:
        return self._json("POST", "/v1/checkpoint", {})

    def model(self) -> bytes:
        """The current model as the bytes of a safetensors file."""
        return self._call("GET", "/v1/model")

    def metrics(self) -> str:
        return self._call("GET", "/metrics").decode()

    def is_ready(self, timeout: float | None = None) -> bool:
        try:
            self._call("GET", "/readyz", timeout=timeout)
            return True
        except (OSError, ServiceError):
            return False

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while not self.is_ready(max(0.001, min(self._timeout, until - time.monotonic()))):
            if time.monotonic() > until:
                raise TimeoutError(f"the service was not ready within {seconds} seconds")
            time.sleep(0.05)

    def wait_until_learned(self, seconds: float = 60.0) -> dict[str, Any]:
        """Waits until all accepted feedback is learned; returns the stats."""
        until = time.monotonic() + seconds
        while True:
            stats = self.stats()
            if stats["rounds"] == stats["log_rounds"]:
                return stats
            if time.monotonic() > until:
                raise TimeoutError(f"{stats['log_rounds'] - stats['rounds']} rounds were not learned within {seconds} seconds")
            time.sleep(0.02)

    def _json(self, method: str, path: str, request: dict[str, Any] | str | None = None) -> dict[str, Any]:
        """Values of a request that are None stay out of it."""
        if isinstance(request, dict):
            request = json.dumps({key: value for key, value in request.items() if value is not None}, separators=(",", ":"))
        return json.loads(self._call(method, path, request))

    def _call(self, method: str, path: str, text: str | None = None, timeout: float | None = None) -> bytes:
        body = None if text is None else text.encode()
        fresh = self._connection is None
        seconds = timeout or self._timeout
        until = time.monotonic() + seconds
        try:
            try:
                return self._exchange(method, path, body, until)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.close()
                # The service may have closed an idle connection. Retrying is safe: feedback counts once.
                if fresh:
                    raise
                return self._exchange(method, path, body, until)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"{method} {path}: the service did not answer within {seconds:g} s (timeout)") from error
            if isinstance(error, http.client.HTTPException):
                raise ConnectionError(f"incomplete response: {error}") from error
            raise

    def _exchange(self, method: str, path: str, body: bytes | None, until: float) -> bytes:
        def left() -> float:
            seconds = until - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            return seconds

        if self._connection is None:
            self._connection = self._connect()
        if self._connection.sock is None:
            self._connection.timeout = left()
            self._connection.connect()
        socket = self._connection.sock
        socket.settimeout(left())
        self._connection.request(method, self._place + path, body, self._headers)
        socket.settimeout(left())
        response = self._connection.getresponse()
        answer = response.read()
        if response.status == 200:
            return answer
        try:
            error = json.loads(answer)["error"]
        except (ValueError, KeyError, TypeError):
            error = {"field": "", "message": answer.decode(errors="replace")}
        retry_after = response.getheader("Retry-After", "")
        raise ServiceError(response.status, error.get("field", ""), error.get("message", ""), error.get("code", ""),
                           int(retry_after) if retry_after.isdecimal() else None)


def example(url: str, token: str | None, rounds: int, incumbent: bool) -> None:
    """Simulates users who prefer documents with a large first and a small last feature, and prints how the lists improve.
    With `incumbent` each request brings an order of its own, by the first feature alone, and says which of 1,000 users asks."""
    import random

    draw = random.Random(1)
    with Client(url, token) as client:
        stats = client.stats()
        features = stats["features"]
        found = []  # per list since the last printed line: how many of the 5 best documents it shows
        for round_number in range(1, rounds + 1):
            docs: list[dict[str, Any]] = [{"id": f"doc{i}", "features": [draw.random() for _ in range(features)]} for i in range(20)]
            utility = {doc["id"]: doc["features"][0] - doc["features"][-1] for doc in docs}
            best = set(sorted(utility, key=lambda doc: utility[doc])[-5:])
            groups = None
            if stats["fairness"]:  # the service has groups; of the better documents more are in A
                groups = {id: "A" if draw.random() < 0.5 + 0.3 * value else "B" for id, value in utility.items()}
            order = [doc["id"] for doc in sorted(docs, key=lambda doc: -doc["features"][0])]
            ranking = client.rank(f"query{round_number}", docs, k=5, groups=groups, incumbent=order if incumbent else None,
                                  user=draw.randrange(1000) if incumbent else None)
            shown = [doc["id"] for doc in ranking["docs"]]
            client.feedback(ranking["impression"], [doc for doc in shown if doc in best])
            found.append(len(best & set(shown)))
            if round_number in (10, 50) or round_number % 100 == 0:
                print(f"round {round_number}: lists showed {sum(found) / len(found):.2f} of the 5 best documents on average" +
                      (f", unfairness {ranking['unfairness']:.2f}" if stats["fairness"] else ""))
                found = []
        print(json.dumps(client.wait_until_learned(), indent=2))


def main() -> int:
    import argparse
    import sys

    parser = argparse.ArgumentParser(description=example.__doc__)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080")
    parser.add_argument("--token-file", help="file with the service's bearer token")
    parser.add_argument("--rounds", type=int, default=500, help="rounds to simulate (500)")
    parser.add_argument("--incumbent", action="store_true", help="send an order of your own with each request")
    options = parser.parse_args()
    try:
        token = open(options.token_file, encoding="utf-8").read().strip() if options.token_file else None
    except (OSError, ValueError) as error:
        print(f"olrank_client: --token-file {options.token_file} cannot be read: {error}", file=sys.stderr)
        return 1
    try:
        example(options.url, token, options.rounds, options.incumbent)
    except ServiceError as error:
        advice = " Name the file with its token: --token-file FILE." if error.status == 401 and not options.token_file else \
                 " Send an order with --incumbent." if error.field == "incumbent" else ""
        print(f"olrank_client: The service at {options.url} refused a request: {error}{advice}", file=sys.stderr)
        return 1
    except (OSError, ValueError, KeyError) as error:
        print(f"olrank_client: {options.url} gives no answer of an olrank service: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
