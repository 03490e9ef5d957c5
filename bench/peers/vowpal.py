#!/usr/bin/env python3
"""Vowpal Wabbit's conditional contextual bandits beside olrank: bench/peers/vowpal.py BIN [--json FILE]

All play the same queries for the same users on one core and take turns of a few rounds. Of Vowpal Wabbit in process,
predict() and learn() of examples that were parsed before are timed, of olrank rank() and learn(), both in processor
seconds; of its daemon and of our service, requests on loopback by the clock. Run it where olrank and vowpalwabbit are
installed; BIN is the folder of the program."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported
try:
    import numpy as np
    import pylibvw  # of vowpalwabbit, too
    import vowpalwabbit

    import olrank
except ImportError as error:
    print(f"skipped: this Python has no {error.name}; install it, or use a Python that has it")
    sys.exit(0)

SIZES = ((20, 20), (120, 136))  # documents, features
SHOWN = 5
CLICKED = np.array([0.05, 0.3, 0.5, 0.7, 0.95])  # by grade: the navigational user, who looks at all that is shown
SHARES = [0.05, 0.13, 0.25, 0.5]  # of a query's documents that have at least the grades 4, 3, 2, 1
TURN = 50  # rounds
KINDS = ("clickgp", "pairrank", "pdgd")
WABBIT = "Vowpal Wabbit"
DAEMON = f"{WABBIT}, daemon"
# With names of documents the most clicks at both sizes together, among about twenty settings of rate, exploration and learner.
TUNED = "-l 1 --adaptive --invariant --epsilon 0.02"


class World:
    """Queries that come back, their documents and grades, and the coins of the user."""

    def __init__(self, seed, docs, features, queries, rounds, noise):
        draw = np.random.default_rng(seed)
        self.X = draw.random((queries, docs, features), dtype=np.float32).round(4)  # as text, the same to all
        worth = self.X @ draw.normal(size=features)
        worth = (worth - worth.mean(1, keepdims=True)) / worth.std(1, keepdims=True) + noise * draw.normal(size=worth.shape)
        place = np.argsort(np.argsort(-worth, axis=1), axis=1) / docs
        self.grades = 4 - np.searchsorted(SHARES, place, side="right")
        self.order = draw.integers(queries, size=rounds)
        self.coins = draw.random((rounds, docs))
        self.gains = np.sort(2.0 ** self.grades - 1, axis=1)[:, ::-1]

    def clicks(self, round, shown):
        return self.coins[round, shown] < CLICKED[self.grades[self.order[round], shown]]

    def quality(self, rounds, lists):
        """NDCG and the expected share of shown documents that is clicked."""
        discount = 1 / np.log2(2 + np.arange(SHOWN))
        query = self.order[rounds]
        grades = self.grades[query[:, None], lists]
        ndcg = ((2.0 ** grades - 1) @ discount) / (self.gains[query, :SHOWN] @ discount)
        return {"ndcg": ndcg.mean(), "clicks": CLICKED[grades].mean()}

    def ends(self):
        """The expected clicks of a random list and of the best."""
        clicked = CLICKED[self.grades]
        return {"random": clicked.mean(), "best": np.sort(clicked, axis=1)[:, -SHOWN:].mean()}

    def text(self, query, named):
        """Writes a query for Vowpal Wabbit, without the slots. A name lets it remember a document, as olrank does by qid."""
        lines = ["ccb shared |"]
        for number, doc in enumerate(self.X[query]):
            name = f" |n {query}_{number}" if named else ""
            lines.append("ccb action |d " + " ".join(f"{at}:{value:.4f}" for at, value in enumerate(doc)) + name)
        return "\n".join(lines)


class InProcess:
    clock = staticmethod(time.process_time)

    def prepare(self, query):
        self.query = query

    def list_of(self, answer):
        return answer

    def tell(self, clicks):
        """Makes ready what learn() then takes."""
        self.clicks = clicks

    def done(self):
        pass

    def settle(self):
        """Waits until all is learned."""

    def close(self):
        pass


class Olrank(InProcess):
    def __init__(self, world, name, seed, **settings):
        self.name, self.world = name, world
        self.ranker = olrank.Ranker(name.partition(",")[0], features=world.X.shape[2], cutoff=SHOWN, seed=seed, **settings)

    def rank(self):
        self.shown = self.ranker.rank(self.world.X[self.query], qid=self.query)
        return self.shown

    def list_of(self, answer):
        return np.array(answer.docs[:SHOWN])

    def learn(self):
        self.ranker.learn(self.shown, self.clicks)


class Wabbit(InProcess):
    """A slot of the bandit is a rank. An example's label can be set once, so each round has examples of its own."""

    def __init__(self, world, name, settings, named, seed):
        self.name = name
        self.bandit = vowpalwabbit.Workspace(f"--ccb_explore_adf --quiet --random_seed {seed} {settings}")
        slots = "\nccb slot |" * SHOWN
        self.texts = [world.text(query, named) + slots for query in range(len(world.X))]

    def prepare(self, query):
        self.examples = self.bandit.parse(self.texts[query])

    def rank(self):
        self.slots = self.bandit.predict(self.examples)
        return self.slots

    def list_of(self, answer):
        return np.array([slot[0][0] for slot in answer[:SHOWN]])

    def tell(self, clicks):
        for example, slot, clicked in zip(self.examples[-SHOWN:], self.slots, clicks):
            action, probability = slot[0]
            example.set_label_string(f"ccb slot {action}:{-int(clicked)}:{probability}")
            if (example.get_ccb_action(0), example.get_ccb_cost()) != (action, -float(clicked)):
                sys.exit(f"{self.name}: the label of a slot is not the click on the document that it showed")

    def learn(self):
        self.bandit.learn(self.examples)

    def done(self):
        self.bandit.finish_example(self.examples)

    def close(self):
        self.bandit.finish()


class Connection:
    """Kept alive; requests are bytes made before."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask_until(self, request, is_whole):
        self.socket.sendall(request)
        answer = self.socket.recv(1 << 16)
        while not is_whole(answer):
            more = self.socket.recv(1 << 16)
            if not more:
                raise RuntimeError(f"the connection ended after {answer!r}")
            answer += more
        return answer

    def ask(self, request):
        """The body of an answer."""
        answer = self.ask_until(request, is_whole_answer)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer)
        return answer[answer.index(b"\r\n\r\n") + 4:]


def is_whole_answer(answer):
    head = answer.find(b"\r\n\r\n")
    return head >= 0 and len(answer) == head + 4 + int(re.search(rb"(?i)\r\ncontent-length: *(\d+)", answer[:head + 2])[1])


def request_of(path, body=None):
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class OverTheWire(InProcess):
    clock = staticmethod(time.perf_counter)

    def started(self):
        self.at_start = 0.0
        self.at_start = self.processor_seconds()

    def processor_seconds(self):
        """Since the start, of the other process and its children, all threads."""
        pids = [str(self.process.pid), *pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]
        return sum(int(pathlib.Path(task, "schedstat").read_text().split()[0])
                   for pid in pids for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) * 1e-9 - self.at_start

    def close(self):
        self.connection.socket.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Daemon(OverTheWire):
    """Vowpal Wabbit's own daemon, started from its library. Its protocol is text, and an answer is a line a slot."""

    def __init__(self, world, name, settings, named, seed):
        self.name = name
        self.texts = [world.text(query, named) for query in range(len(world.X))]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "port")
            program = "import sys, vowpalwabbit, pylibvw; pylibvw.vw.run_parser(vowpalwabbit.Workspace(arg_list=sys.argv[1:]))"
            daemon = f"--daemon --foreground --num_children 1 --port 0 --port_file {file}"
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, *f"--ccb_explore_adf --quiet --random_seed {seed} {settings} {daemon}".split()])
            while not (file.exists() and file.read_text().endswith("\n")):
                if self.process.poll() is not None:
                    sys.exit("Vowpal Wabbit's daemon did not start")
                time.sleep(0.05)
            self.connection = Connection(int(file.read_text()))
        self.started()

    def prepare(self, query):
        self.text = self.texts[query]
        self.request = (self.text + "\nccb slot |" * SHOWN + "\n\n").encode()

    def rank(self):
        self.answer = self.connection.ask_until(self.request, lambda answer: answer.count(b"\n") > SHOWN)
        return self.answer

    def list_of(self, answer):
        self.slots = [line.split(",")[0].split(":") for line in answer.decode().split("\n")[:SHOWN]]
        return np.array([int(action) for action, _ in self.slots])

    def tell(self, clicks):
        labels = "".join(f"\nccb slot {action}:{-int(clicked)}:{probability} |" for (action, probability), clicked in zip(self.slots, clicks))
        self.request = (self.text + labels + "\n\n").encode()

    def learn(self):
        self.connection.ask_until(self.request, lambda answer: answer.count(b"\n") > SHOWN)


class Service(OverTheWire):
    def __init__(self, world, kind, seed, bin, state):
        self.name = f"{kind}, service"
        self.process = subprocess.Popen(
            [bin / "olrank", "serve", "--state", state, "--port", "0", "--ranker", kind, "--features", str(world.X.shape[2]), "--cutoff",
             str(SHOWN), "--seed", str(seed)], stdout=subprocess.PIPE, stderr=state.with_suffix(".log").open("w"), text=True)
        self.connection = Connection(int(self.process.stdout.readline().rpartition(":")[2]))
        self.bodies = [json.dumps({"query": str(query), "docs": [
            {"id": str(number), "features": [round(value, 4) for value in doc]} for number, doc in enumerate(docs.tolist())]},
            separators=(",", ":")).encode() for query, docs in enumerate(world.X)]
        self.rounds = 0
        self.started()

    def prepare(self, query):
        self.request = request_of("/v1/rank", self.bodies[query])

    def rank(self):
        return self.connection.ask(self.request)

    def list_of(self, answer):
        self.answer = json.loads(answer)
        return np.array([int(doc["id"]) for doc in self.answer["docs"]])

    def tell(self, clicks):
        self.request = request_of("/v1/feedback", json.dumps(
            {"impression": self.answer["impression"], "clicks": np.flatnonzero(clicks).tolist()}).encode())

    def learn(self):
        self.connection.ask(self.request)
        self.rounds += 1

    def settle(self):
        while int(re.search(rb"(?m)^olrank_rounds_total (\d+)", self.connection.ask(request_of("/metrics")))[1]) < self.rounds:
            time.sleep(0.0005)


def check(options):
    """Predictions of Vowpal Wabbit alone teach nothing, and learning from labels does."""
    world = World(1, 10, 4, 1, 200, 0.0)
    best = int(np.argmax(world.grades[0]))
    wabbit = Wabbit(world, WABBIT, "", False, 1)
    chances = []
    for learns in (False, True):
        for _ in range(200):
            wabbit.prepare(0)
            shown = wabbit.list_of(wabbit.rank())
            if learns:
                wabbit.tell(shown == best)
                wabbit.learn()
            wabbit.done()
        chances.append(dict(wabbit.slots[0])[best])
    if not (abs(chances[0] - 0.1) < 1e-6 and chances[1] > 0.9):
        sys.exit(f"Vowpal Wabbit shows the best document first with probabilities {chances} before and after learning; nothing was timed")


def play(world, players):
    """All rounds of all players, TURN at a time: seconds of ranking and learning, and the lists."""
    found = {player.name: {"rank": 0.0, "learn": 0.0, "lists": []} for player in players}
    for first in range(0, len(world.order), TURN):
        for player in players:
            mine, clock = found[player.name], player.clock
            for round in range(first, min(first + TURN, len(world.order))):
                player.prepare(int(world.order[round]))
                begin = clock()
                answer = player.rank()
                mine["rank"] += clock() - begin
                shown = player.list_of(answer)
                mine["lists"].append(shown)
                player.tell(world.clicks(round, shown))
                begin = clock()
                player.learn()
                mine["learn"] += clock() - begin
                player.done()
            begin = clock()
            player.settle()
            mine["learn"] += clock() - begin
    return found


def players_of(world, seed, bin, folder):
    return [Wabbit(world, WABBIT, "", False, seed), Wabbit(world, f"{WABBIT}, tuned", TUNED, True, seed),
            Daemon(world, DAEMON, "", False, seed), *(Olrank(world, kind, seed) for kind in KINDS),
            Olrank(world, "clickgp, linear terms", seed, terms="linear"), *(Service(world, kind, seed, bin, folder / kind) for kind in KINDS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.5, help="of a document's worth, over the spread of what its features explain")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    check(options)
    about = json.loads(subprocess.run([options.bin / "olrank", "info", "--json"], capture_output=True, check=True).stdout)
    processor = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    told = {"machine": {"processor": processor, "cores": len(cores), "blas": about["blas"], "compiler": about["compiler"],
                        "date": datetime.date.today().isoformat(), "load": round(os.getloadavg()[0], 2)},
            "vowpalwabbit": vowpalwabbit.__version__, "tuned": TUNED, "python": platform.python_version(), "queries": options.queries,
            "rounds": options.rounds, "repeats": options.repeats, "noise": options.noise, "shown": SHOWN, "sizes": []}
    for docs, features in SIZES:
        plays, quality, ends, same = [], [], [], []
        for seed in range(1, options.repeats + 1):
            world = World(seed, docs, features, options.queries, options.rounds, options.noise)
            with tempfile.TemporaryDirectory() as folder:
                players = players_of(world, seed, options.bin, pathlib.Path(folder))
                found = play(world, players)
                late = np.arange(options.rounds * 4 // 5, options.rounds)
                plays.append({name: {part: 1e6 * mine[part] / options.rounds for part in ("rank", "learn")} for name, mine in found.items()})
                quality.append({name: world.quality(late, np.array(mine["lists"])[late]) for name, mine in found.items()})
                ends.append(world.ends())
                same.append(np.mean(np.array(found[WABBIT]["lists"]) == np.array(found[DAEMON]["lists"])))
                for player in players:
                    if isinstance(player, OverTheWire):
                        plays[-1][player.name]["processor"] = 1e6 * player.processor_seconds() / options.rounds
                    player.close()
            print(f"{docs} documents of {features} features, repeat {seed}: " + "; ".join(
                f"{name} {sum(one[part] for part in ('rank', 'learn')):.0f} µs, {quality[-1][name]['clicks']:.3f}"
                for name, one in plays[-1].items()), flush=True)
        rows = []
        for name in plays[0]:
            rounds = [one[name]["rank"] + one[name]["learn"] for one in plays]
            over = [sum(one[WABBIT][part] for part in ("rank", "learn")) / mine for one, mine in zip(plays, rounds)]
            rows.append({"player": name, "microseconds": {"median": statistics.median(rounds), "min": min(rounds), "max": max(rounds)},
                         **{part: statistics.median(one[name][part] for one in plays) for part in plays[0][name]},
                         "over_wabbit": statistics.median(over),
                         **{figure: statistics.median(float(one[name][figure]) for one in quality) for figure in ("ndcg", "clicks")}})
        told["sizes"].append({"docs": docs, "features": features, "daemon_shows_the_same": float(min(same)),
                              **{end: statistics.median(float(one[end]) for one in ends) for end in ends[0]}, "players": rows})
    told["machine"]["load"] = max(told["machine"]["load"], round(os.getloadavg()[0], 2))
    if options.json:
        options.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
