"""Measures what a second replica brings, and what a shared log costs: lists a second of one replica and of two, each on a core of its own, with
redis-server, learner and the load on the same cores, and of a service alone with its own log on the first core.

Usage: replicas.py PROGRAM [--ranker clickgp] [--docs 120] [--features 136] [--turns 5] [--seconds 5] [--json FILE]
It needs redis-server and wrk. All figures come from one run, in turns; a ratio is the median over the turns."""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program", type=pathlib.Path)
parser.add_argument("--ranker", default="clickgp")
parser.add_argument("--docs", type=int, default=120)
parser.add_argument("--features", type=int, default=136)
parser.add_argument("--turns", type=int, default=5)
parser.add_argument("--seconds", type=int, default=5)
parser.add_argument("--json", type=pathlib.Path)
options = parser.parse_args()
os.environ["OLRANK_PROGRAM"] = str(options.program.resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "serve"))
from replicas_test import Redis  # noqa: E402
from running_service import RunningService, processor_seconds  # noqa: E402


def pinned(process, core):
    subprocess.run(["taskset", "--all-tasks", "--cpu-list", "--pid", str(core), str(process.pid)], check=True, capture_output=True)


def rates(urls, script):
    loads = [subprocess.Popen(["wrk", "--threads", "1", "--connections", "4", "--duration", f"{options.seconds}s", "--latency", "--script",
                               str(script), url], stdout=subprocess.PIPE, text=True) for url in urls]
    told = [load.communicate()[0] for load in loads]
    if any("Non-2xx" in one for one in told):
        raise RuntimeError(told)
    return sum(float(one.split("Requests/sec:")[1].split()[0]) for one in told)


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    draw = random.Random(1)
    bodies = [json.dumps({"query": f"q{query}", "docs": [
        {"id": f"d{doc}", "features": [round(draw.random(), 3) for _ in range(options.features)]} for doc in range(options.docs)]})
        for query in range(20)]
    script = folder / "load.lua"
    script.write_text("local bodies = {" + ",".join(f"[==[{body}]==]" for body in bodies) + "}\nlocal turn = 0\n"
                      'request = function() turn = turn % 20 + 1\n'
                      'return wrk.format("POST", "/v1/rank", {["Content-Type"] = "application/json"}, bodies[turn]) end\n')
    redis = Redis(folder / "redis")
    log = ["--log", f"{redis.url}/bench"]
    kind = ["--features", options.features, "--ranker", options.ranker]
    learner = RunningService(folder / "learner", *log, *kind, "--role", "learner")
    alone = RunningService(folder / "alone", *kind)
    replicas = [RunningService(None, *log, "--role", "replica") for _ in range(2)]
    services = [learner, alone, *replicas]
    try:
        for service, core in ((alone, 0), (replicas[0], 0), (replicas[1], 1)):
            pinned(service.process, core)
        for service in (alone, replicas[0]):  # something to rank with
            with service.client() as client:
                client.wait_until_ready()
                for body in bodies * 5:
                    request = urllib.request.Request(f"{service.url}/v1/rank", body.encode(), {"Content-Type": "application/json"})
                    with urllib.request.urlopen(request) as answer:
                        ranked = json.load(answer)
                    client.feedback(ranked["impression"], [ranked["docs"][0]["id"]])
        groups = ([one.process for one in replicas], [redis.process], [learner.process])
        turns = []
        for turn in range(options.turns):
            own = rates([alone.url], script)
            began = processor_seconds(replicas[0].process)
            one = rates([replicas[0].url], script)
            of_one = processor_seconds(replicas[0].process) - began
            began = [sum(map(processor_seconds, group)) for group in groups]
            two = rates([replica.url for replica in replicas], script)
            used = [sum(map(processor_seconds, group)) - before for group, before in zip(groups, began, strict=True)]
            turns.append({"alone": own, "one": one, "two": two, "processor_seconds_of_one": of_one,
                          "processor_seconds_of_two": dict(zip(("replicas", "redis", "learner"), used, strict=True))})
            print(f"turn {turn + 1}: alone {own:.0f}, one replica {one:.0f}, two {two:.0f} lists/s, ratio {two / one:.2f}; of {options.seconds} s "
                  f"one had {of_one:.2f}, two {used[0]:.2f}, redis {used[1]:.2f}", flush=True)
    finally:
        for service in services:
            service.kill()
        redis.kill()
result = {"ranker": options.ranker, "docs": options.docs, "features": options.features, "cores": os.cpu_count(), "turns": turns,
          "two_over_one": statistics.median(turn["two"] / turn["one"] for turn in turns),
          "two_over_one_a_processor_second": statistics.median(
              turn["two"] / turn["processor_seconds_of_two"]["replicas"] * turn["processor_seconds_of_one"] / turn["one"] for turn in turns),
          "one_over_alone": statistics.median(turn["one"] / turn["alone"] for turn in turns)}
print(f"two replicas over one: {result['two_over_one']:.2f}, a processor second {result['two_over_one_a_processor_second']:.2f}; a replica over a service alone: {result['one_over_alone']:.2f}")
if options.json:
    options.json.write_text(json.dumps(result, indent=1) + "\n")
