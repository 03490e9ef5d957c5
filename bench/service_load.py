"""Response times of `olrank serve` on loopback, compared with the cost of its parts. Three measurements:

  one client, learning on       median of /v1/rank over parse + scores + widths             target: at most 1.5
  eight clients at half load    p99 over p50                                                target: at most 5
  eight clients without pauses  requests per second × (parse + scores + widths) / cores   target: at least 0.8

Usage: service_load.py BIN [--ranker olranknet] [--covariance full] [--width 100] [--docs 100] [--features 136] [--seconds 10]
[--device cuda] [--json FILE]
BIN is the folder of olrank and service_bench. --covariance and --width are for olranknet. The clients run on the same
machine and compete for its cores. The last line therefore also gives the CPU time per request of the service itself.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin", type=pathlib.Path)
parser.add_argument("--ranker", default="olranknet")
parser.add_argument("--covariance", default="full")
parser.add_argument("--width", type=int, default=100)
parser.add_argument("--docs", type=int, default=100)
parser.add_argument("--features", type=int, default=136)
parser.add_argument("--seconds", type=float, default=10.0)
parser.add_argument("--device", default="cpu")
parser.add_argument("--json", type=pathlib.Path)
options = parser.parse_args()
os.environ["OLRANK_PROGRAM"] = str((options.bin / "olrank").resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "serve"))
from running_service import RunningService, processor_seconds  # noqa: E402

NETWORK = ["--protocol", "paper", "--width", str(options.width), "--covariance", options.covariance] if options.ranker == "olranknet" else []
CLIENTS = 8
CORES = len(os.sched_getaffinity(0))


def bodies(seed, count=8):
    draw = random.Random(seed)
    return [json.dumps({"query": f"q{seed}-{number}", "docs": [
        {"id": f"d{doc}", "features": [round(draw.random(), 4) for _ in range(options.features)]} for doc in range(options.docs)]},
        separators=(",", ":")).encode() for number in range(count)]


class Caller:
    def __init__(self, address, seed):
        self.connection = http.client.HTTPConnection(*address, timeout=60)
        self.draw = random.Random(seed)
        self.bodies = bodies(seed)

    def post(self, path, body):
        self.connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise RuntimeError(answer)
        return answer

    def rank(self):
        """The response and its time in seconds."""
        body = self.draw.choice(self.bodies)
        begin = time.perf_counter()
        answer = self.post("/v1/rank", body)
        return answer, time.perf_counter() - begin

    def health(self):
        begin = time.perf_counter()
        self.connection.request("GET", "/healthz")
        return self.connection.getresponse().read(), time.perf_counter() - begin

    def click(self, answer):
        ranking = json.loads(answer)
        clicks = [rank for rank in range(len(ranking["docs"])) if self.draw.random() < 0.3]
        self.post("/v1/feedback", json.dumps({"impression": ranking["impression"], "clicks": clicks}).encode())


def call_for(address, seed, seconds, pause, ask, click_share, times):
    caller = Caller(address, seed)
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if pause:
            time.sleep(caller.draw.expovariate(1.0 / pause))
        answer, taken = ask(caller)
        times.append(taken)
        if caller.draw.random() < click_share:
            caller.click(answer)


def many(address, seconds, pause, ask=Caller.rank, click_share=0.0):
    """Sorted response times of all clients."""
    with multiprocessing.Manager() as manager:
        lists = [manager.list() for _ in range(CLIENTS)]

        def work(number):
            times = []
            call_for(address, 100 + number, seconds, pause, ask, click_share, times)
            lists[number].extend(times)

        processes = [multiprocessing.Process(target=work, args=(number,)) for number in range(CLIENTS)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        return sorted(taken for times in lists for taken in times)


def alone(state, body):
    """Milliseconds of the parts; the service must not be using the state."""
    done = subprocess.run([options.bin / "service_bench", state, body], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def service_of(state):
    return RunningService(state, "--ranker", options.ranker, "--features", options.features, "--device", options.device, *NETWORK)


with tempfile.TemporaryDirectory() as folder:
    state, body = pathlib.Path(folder, "state"), pathlib.Path(folder, "body.json")
    body.write_bytes(bodies(1, 1)[0])
    service = service_of(state)
    caller = Caller(service.address, 1)
    for _ in range(40):  # so that widths have pairs to depend on
        caller.click(caller.rank()[0])
    times = []
    until = time.perf_counter() + options.seconds
    while time.perf_counter() < until:
        answer, taken = caller.rank()
        caller.click(answer)
        times.append(1000 * taken)
    service.stop()
    parts = alone(state, body)
    cost = parts["parse_ms"] + parts["rank_ms"]
    one = statistics.median(times[-max(20, len(times) // 5):])  # by then the state is close to the one measured alone

    service = service_of(state)
    capacity = CORES / (cost / 1000)
    before = processor_seconds(service.process)
    closed = many(service.address, options.seconds, 0.0)
    own = 1000 * (processor_seconds(service.process) - before) / len(closed)
    throughput = len(closed) / options.seconds
    # Half of the throughput of the closed loop.
    pause = max(0.0, CLIENTS / (throughput / 2) - closed[0])
    half = many(service.address, options.seconds, pause)
    health = many(service.address, options.seconds, pause, Caller.health)  # what the machine and the clients alone have
    service.stop()

p50, p99 = half[len(half) // 2], half[int(len(half) * 0.99)]
health_p50, health_p99 = health[len(health) // 2], health[int(len(health) * 0.99)]
results = {"cores": CORES, "device": options.device, "ranker": options.ranker, "covariance": options.covariance, "width": options.width, "docs": options.docs, "features": options.features,
           "rounds": parts["rounds"], "pairs": parts["pairs"], "body_bytes": parts["body_bytes"],
           "parse_ms": parts["parse_ms"], "scores_and_widths_ms": parts["rank_ms"],
           "one_client": {"requests": len(times), "median_ms": one, "over_parts": one / cost},
           "half_load": {"requests": len(half), "p50_ms": 1000 * p50, "p99_ms": 1000 * p99, "p99_over_p50": p99 / p50,
                         "health_p50_ms": 1000 * health_p50, "health_p99_ms": 1000 * health_p99},
           "closed_loop": {"requests_per_second": throughput, "of_capacity": throughput / capacity, "own_ms": own}}
print(f"{CORES} cores; {options.docs} documents × {options.features} features, {' '.join([options.ranker, *NETWORK])}; "
      f"{parts['pairs']} pairs; parse {parts['parse_ms']:.2f} ms, scores and widths {parts['rank_ms']:.2f} ms")
print(f"one client, learning on       median {one:.2f} ms = {one / cost:.2f} × parts")
print(f"eight clients at half load    p50 {1000 * p50:.2f} ms, p99 {1000 * p99:.2f} ms: {p99 / p50:.2f}; "
      f"/healthz at the same rate {1000 * health_p50:.2f} and {1000 * health_p99:.2f} ms")
print(f"eight clients without pauses  {throughput:.1f} requests/s = {100 * throughput / capacity:.0f} % of capacity; "
      f"{own:.2f} ms CPU time per request = {own / cost:.2f} × parts")
if options.json:
    options.json.write_text(json.dumps(results, indent=2) + "\n")
