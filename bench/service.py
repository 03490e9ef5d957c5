"""Measures what `olrank serve` costs on loopback, with the clients on the same machine, where they compete for its cores.

    service.py load BIN       response times compared with the cost of the service's parts:
        one client, learning on       median of /v1/rank over parse + scores + widths             target: at most 1.5
        eight clients at half load    p99 over p50                                                target: at most 5
        eight clients without pauses  requests per second × (parse + scores + widths) / cores   target: at least 0.8
    service.py growth BIN [-- FLAGS OF olrank serve]
        learning rate, ranking latency, memory and checkpoint in equal windows of the records that a service learns from a
        generated log: lists of `shown` of a query's `pool` documents, while a client asks for `rate` rankings a second of
        `docs` other documents. With rounds whose cost does not grow, the last window is like the first. The folder needs two
        copies of the records, 16 GB for a million at the defaults, and a checkpoint.
    service.py replicas BIN   lists a second of one replica and of two, each on a core of its own, with redis-server, learner
        and load on the same cores, and of a service alone with its own log; in turns, a ratio is the median over the turns.
        It needs redis-server and wrk.

BIN is the folder of olrank and, for load, of service_bench. --json FILE has all figures."""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    defaults = {"load": {"ranker": "olranknet", "covariance": "full", "width": 100, "docs": 100, "features": 136, "seconds": 10.0, "device": "cpu"},
                "growth": {"records": 100000, "windows": 10, "queries": 2000, "pool": 30, "shown": 10, "docs": 100, "features": 136, "rate": 20.0},
                "replicas": {"ranker": "clickgp", "docs": 120, "features": 136, "turns": 5, "seconds": 5}}
    for name, flags in defaults.items():
        command = commands.add_parser(name)
        command.add_argument("bin", type=pathlib.Path)
        for flag, value in flags.items():
            command.add_argument(f"--{flag}", type=type(value), default=value, help=f"[{value}]")
        command.add_argument("--json", type=pathlib.Path)
    commands.choices["growth"].add_argument("--folder", type=pathlib.Path, help="where log and state are written [a temporary folder]")
    split = arguments.index("--") if "--" in arguments else len(arguments)
    found = parser.parse_args(arguments[:split])
    found.flags = arguments[split + 1:]
    return found


options = parsed(sys.argv[1:])
os.environ["OLRANK_PROGRAM"] = str((options.bin / "olrank").resolve())
os.environ.setdefault("OLRANK_BUILD", str(options.bin.resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "serve"))
from replicas_test import Redis  # noqa: E402
from running_service import RunningService, processor_seconds, resident_bytes  # noqa: E402


def document(draw):
    return [round(draw.random(), 4) for _ in range(options.features)]


def bodies(draw, count):
    """Requests for rankings of different queries."""
    return [json.dumps({"query": f"q{number}", "docs": [{"id": f"d{doc}", "features": document(draw)} for doc in range(options.docs)]},
                       separators=(",", ":")).encode() for number in range(count)]


class Caller:
    """A connection that is kept alive, and a user's coins."""

    def __init__(self, address, seed, requests=8):
        self.connection = http.client.HTTPConnection(*address, timeout=60)
        self.draw = random.Random(seed)
        self.bodies = bodies(self.draw, requests)

    def ask(self, method, path, body=None):
        """The answer and its time in seconds."""
        begin = time.perf_counter()
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} was answered with {response.status}: {answer.decode(errors='replace')}")
        return answer, time.perf_counter() - begin

    def rank(self):
        return self.ask("POST", "/v1/rank", self.draw.choice(self.bodies))

    def health(self):
        return self.ask("GET", "/healthz")

    def click(self, answer):
        ranking = json.loads(answer)
        clicks = [rank for rank in range(len(ranking["docs"])) if self.draw.random() < 0.3]
        self.ask("POST", "/v1/feedback", json.dumps({"impression": ranking["impression"], "clicks": clicks}).encode())


def percentile(values, share):
    """None without values, which JSON writes as null."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


# Load.

CLIENTS = 8


def call_for(address, seed, pause, ask):
    """Times of requests in so many seconds, with random pauses of this mean."""
    caller, times = Caller(address, seed), []
    until = time.perf_counter() + options.seconds
    while time.perf_counter() < until:
        if pause:
            time.sleep(caller.draw.expovariate(1.0 / pause))
        times.append(ask(caller)[1])
    return times


def many(address, pause, ask=Caller.rank):
    """Sorted times of all clients, each a process."""
    with multiprocessing.Pool(CLIENTS) as pool:
        return sorted(sum(pool.starmap(call_for, [(address, 100 + number, pause, ask) for number in range(CLIENTS)], 1), []))


def load(folder):
    cores = len(os.sched_getaffinity(0))
    network = ["--protocol", "paper", "--width", options.width, "--covariance", options.covariance] if options.ranker == "olranknet" else []
    state, body = folder / "state", folder / "body.json"

    def service_of_state():
        return RunningService(state, "--ranker", options.ranker, "--features", options.features, "--device", options.device, *network)

    service = service_of_state()
    caller, times = Caller(service.address, 1), []
    body.write_bytes(caller.bodies[0])
    for _ in range(40):  # so that widths have pairs to depend on
        caller.click(caller.rank()[0])
    until = time.perf_counter() + options.seconds
    while time.perf_counter() < until:
        answer, taken = caller.rank()
        caller.click(answer)
        times.append(1000 * taken)
    service.stop()
    # The parts alone; the service must not be using the state.
    parts = json.loads(subprocess.run([options.bin / "service_bench", state, body], capture_output=True, text=True, check=True).stdout)
    cost = parts["parse_ms"] + parts["rank_ms"]
    one = statistics.median(times[-max(20, len(times) // 5):])  # by then the state is close to the one measured alone

    service = service_of_state()
    before = processor_seconds(service.process)
    closed = many(service.address, 0.0)
    own = 1000 * (processor_seconds(service.process) - before) / len(closed)
    throughput = len(closed) / options.seconds
    capacity = cores / (cost / 1000)
    pause = max(0.0, CLIENTS / (throughput / 2) - closed[0])  # for half of the throughput of the closed loop
    half = many(service.address, pause)
    health = many(service.address, pause, Caller.health)  # what the machine and the clients alone have
    service.stop()

    p50, p99, health_p50, health_p99 = (1000 * percentile(values, share) for values in (half, health) for share in (0.5, 0.99))
    print(f"{cores} cores; {options.docs} documents × {options.features} features, {' '.join(map(str, [options.ranker, *network]))}; "
          f"{parts['pairs']} pairs; parse {parts['parse_ms']:.2f} ms, scores and widths {parts['rank_ms']:.2f} ms")
    print(f"one client, learning on       median {one:.2f} ms = {one / cost:.2f} × parts")
    print(f"eight clients at half load    p50 {p50:.2f} ms, p99 {p99:.2f} ms: {p99 / p50:.2f}; "
          f"/healthz at the same rate {health_p50:.2f} and {health_p99:.2f} ms")
    print(f"eight clients without pauses  {throughput:.1f} requests/s = {100 * throughput / capacity:.0f} % of capacity; "
          f"{own:.2f} ms CPU time per request = {own / cost:.2f} × parts")
    return {"cores": cores, "device": options.device, "ranker": options.ranker, "covariance": options.covariance, "width": options.width,
            "docs": options.docs, "features": options.features, "rounds": parts["rounds"], "pairs": parts["pairs"], "body_bytes": parts["body_bytes"],
            "parse_ms": parts["parse_ms"], "scores_and_widths_ms": parts["rank_ms"],
            "one_client": {"requests": len(times), "median_ms": one, "over_parts": one / cost},
            "half_load": {"requests": len(half), "p50_ms": p50, "p99_ms": p99, "p99_over_p50": p99 / p50,
                          "health_p50_ms": health_p50, "health_p99_ms": health_p99},
            "closed_loop": {"requests_per_second": throughput, "of_capacity": throughput / capacity, "own_ms": own}}


# Growth.

STALLED_AFTER = 120  # seconds in which nothing is learned


def write_records(path, draw):
    hidden = [draw.gauss(0.0, 1.0) for _ in range(options.features)]
    pools = []
    for query in range(options.queries):
        docs = [document(draw) for _ in range(options.pool)]
        utility = [sum(a * b for a, b in zip(hidden, doc)) for doc in docs]
        median = sorted(utility)[options.pool // 2]
        pools.append([(f'"q{query}d{number}"', json.dumps(doc, separators=(",", ":")), 0.8 if utility[number] > median else 0.1)
                      for number, doc in enumerate(docs)])
    with path.open("w") as log:
        for number in range(options.records):
            query = draw.randrange(options.queries)
            shown = draw.sample(pools[query], options.shown)
            clicks = ",".join("1" if draw.random() < doc[2] else "0" for doc in shown)
            record = (f'{{"qid":"q{query}","shown":[{",".join(doc[0] for doc in shown)}],"clicks":[{clicks}],'
                      f'"inputs":[{",".join(doc[1] for doc in shown)}]}}\n')
            if number == 0:
                free, needed = shutil.disk_usage(path.parent).free, 2.1 * options.records * len(record)
                if free < needed:
                    sys.exit(f"service.py: {path.parent} has {free / 1e9:.1f} GB free, but the records and the service's copy need "
                             f"{needed / 1e9:.1f} GB: choose another --folder or fewer --records.")
            log.write(record)


class SteadyClient:
    """Ranks at a steady rate and keeps when each answer came and how many seconds it took."""

    def __init__(self, address):
        self.caller = Caller(address, 2)
        self.answers = []
        self.ended = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        try:
            taken = 0.0
            while not self.ended.wait(max(0.0, 1.0 / options.rate - taken)):
                taken = self.caller.rank()[1]
                self.answers.append((time.perf_counter(), taken))
        except Exception as error:  # raised again by the thread that measures
            self.failure = error

    def end(self):
        self.ended.set()
        self.thread.join()
        if self.failure:
            raise RuntimeError("The client that ranks has failed.") from self.failure


def growth(folder):
    folder = options.folder or folder
    folder.mkdir(parents=True, exist_ok=True)
    log, state = folder / "records.jsonl", folder / "state"
    if state.exists():
        sys.exit(f"service.py: {state} is there from an earlier run: remove it or choose another --folder.")
    write_records(log, random.Random(1))
    begin = time.perf_counter()
    service = RunningService(state, "--features", options.features, "--import-log", log, *options.flags)
    try:
        started = time.perf_counter() - begin
        watcher, client = Caller(service.address, 3, 0), SteadyClient(service.address)

        def look():
            saved = state / "checkpoint"
            learned = int(re.search(rb"^olrank_rounds_total (\d+)", watcher.ask("GET", "/metrics")[0], re.M)[1])
            return (time.perf_counter(), learned, processor_seconds(service.process), resident_bytes(service.process),
                    saved.stat().st_size if saved.exists() else 0)

        seen = [look()]
        progressed = seen[0][0]
        while seen[-1][1] < options.records:
            time.sleep(0.1)
            if client.failure:
                break
            if service.process.poll() is not None:
                raise RuntimeError(f"The service ended with {service.process.returncode} after round {seen[-1][1]}: {service.messages()}")
            seen.append(look())
            if seen[-1][1] > seen[-2][1]:
                progressed = seen[-1][0]
            if seen[-1][0] - progressed > STALLED_AFTER:
                raise RuntimeError(f"Nothing was learned in {STALLED_AFTER} seconds after round {seen[-1][1]}: {service.messages()}")
        client.end()
    finally:
        service.stop()
    print(f"{options.records} records imported and checked in {started:.1f} s; {' '.join(options.flags)}")
    windows = [window_of(number, seen, client.answers) for number in range(options.windows)]
    return {"records": options.records, "flags": options.flags, "start_seconds": started, "windows": windows}


def window_of(number, seen, answers):
    """The figures of a window, printed too."""
    first, last = (options.records * (number + end) // options.windows for end in (0, 1))
    since = max(one for one in seen if one[1] <= first) if seen[0][1] <= first else seen[0]
    until = min(one for one in seen if one[1] >= last)
    times = [1000 * taken for at, taken in answers if since[0] < at <= until[0]]
    learned = until[1] - since[1]
    row = {"from": since[1], "to": until[1], "learned_per_second": learned / max(1e-9, until[0] - since[0]),
           "cpu_ms_per_round": 1000 * (until[2] - since[2]) / max(1, learned), "rankings": len(times),
           "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "resident_bytes": until[3], "checkpoint_bytes": until[4]}
    p50, p99 = ("–" if row[key] is None else f"{row[key]:.2f}" for key in ("p50_ms", "p99_ms"))
    print(f"rounds {row['from']}–{row['to']}: {row['learned_per_second']:.1f} learned a second, {row['cpu_ms_per_round']:.3f} ms CPU a round; "
          f"{row['rankings']} rankings, p50 {p50} ms, p99 {p99} ms; {row['resident_bytes'] / 1e6:.1f} MB, checkpoint {row['checkpoint_bytes'] / 1e6:.1f} MB")
    return row


# Replicas.


def rates(services, script):
    """Lists a second of all, each asked by a wrk of its own."""
    loads = [subprocess.Popen(["wrk", "--threads", "1", "--connections", "4", "--duration", f"{options.seconds}s", "--script", script, service.url],
                              stdout=subprocess.PIPE, text=True) for service in services]
    told = [one.communicate()[0] for one in loads]
    if any("Non-2xx" in one for one in told):
        raise RuntimeError(told)
    return sum(float(one.split("Requests/sec:")[1].split()[0]) for one in told)


def replicas(folder):
    asked, script = bodies(random.Random(1), 20), folder / "load.lua"
    script.write_text("local bodies = {" + ",".join(f"[==[{body.decode()}]==]" for body in asked) + "}\nlocal turn = 0\n"
                      'request = function() turn = turn % 20 + 1\n'
                      'return wrk.format("POST", "/v1/rank", {["Content-Type"] = "application/json"}, bodies[turn]) end\n')
    redis = Redis(folder / "redis")
    log, kind = ["--log", f"{redis.url}/bench"], ["--features", options.features, "--ranker", options.ranker]
    learner, alone = RunningService(folder / "learner", *log, *kind, "--role", "learner"), RunningService(folder / "alone", *kind)
    two = [RunningService(None, *log, "--role", "replica") for _ in range(2)]
    turns = []
    try:
        for service, core in ((alone, 0), (two[0], 0), (two[1], 1)):
            subprocess.run(["taskset", "--all-tasks", "--cpu-list", "--pid", str(core), str(service.process.pid)], check=True, capture_output=True)
        for service in (alone, two[0]):  # something to rank with
            with service.client() as client:
                client.wait_until_ready()
            caller = Caller(service.address, 1, 20)
            for _ in range(100):
                caller.click(caller.rank()[0])
        for number in range(options.turns):
            turn = {"alone": rates([alone], script)}
            for name, some in (("one", two[:1]), ("two", two)):
                began = [processor_seconds(one.process) for one in (*two, redis, learner)]
                turn[name] = rates(some, script)
                first, second, *others = [processor_seconds(one.process) - before for one, before in zip((*two, redis, learner), began, strict=True)]
                turn[f"processor_seconds_of_{name}"] = first if name == "one" else dict(zip(("replicas", "redis", "learner"), (first + second, *others)))
            turns.append(turn)
            print(f"turn {number + 1}: alone {turn['alone']:.0f}, one replica {turn['one']:.0f}, two {turn['two']:.0f} lists/s", flush=True)
    finally:
        for service in (learner, alone, *two, redis):
            service.kill()
    found = {"two_over_one": statistics.median(turn["two"] / turn["one"] for turn in turns),
             "two_over_one_a_processor_second": statistics.median(
                 turn["two"] / turn["processor_seconds_of_two"]["replicas"] * turn["processor_seconds_of_one"] / turn["one"] for turn in turns),
             "one_over_alone": statistics.median(turn["one"] / turn["alone"] for turn in turns)}
    print(f"two replicas over one: {found['two_over_one']:.2f}, a processor second {found['two_over_one_a_processor_second']:.2f}; "
          f"a replica over a service alone: {found['one_over_alone']:.2f}")
    return {"ranker": options.ranker, "docs": options.docs, "features": options.features, "cores": os.cpu_count(), "turns": turns, **found}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        told = {"load": load, "growth": growth, "replicas": replicas}[options.command](pathlib.Path(temporary))
    if options.json:
        options.json.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n")
