"""How a service's cost depends on the records that it has learned: learning rate, ranking latency, memory and checkpoint while it
learns a generated log, in equal windows of its rounds. With rounds whose cost does not grow, the last window is like the first.

Usage: service_growth.py BIN [--records 100000] [--windows 10] [--queries 2000] [--pool 30] [--shown 10] [--candidates 100]
       [--features 136] [--rate 20] [--folder DIR] [--json FILE] [-- FLAGS OF olrank serve]
For example: service_growth.py build/bin --records 1000000 -- --protocol paper --ranker olranknet --covariance inducing --retrain growth
BIN is the folder of olrank. The records are lists of `shown` of a query's `pool` documents; a request ranks `candidates` other
documents. One client asks for `rate` rankings a second on the same machine and competes for its cores with the learning thread.
The folder needs two copies of the records, the imported one and the service's log: 8 kB each at the defaults, so 16 GB for a
million. A checkpoint comes on top.
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import threading
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin", type=pathlib.Path)
for flag, value in (("records", 100000), ("windows", 10), ("queries", 2000), ("pool", 30), ("shown", 10), ("candidates", 100),
                    ("features", 136)):
    parser.add_argument(f"--{flag}", type=int, default=value)
parser.add_argument("--rate", type=float, default=20.0)
parser.add_argument("--folder", type=pathlib.Path, help="where log and state are written; default: a temporary folder")
parser.add_argument("--json", type=pathlib.Path)
arguments = sys.argv[1:]
split = arguments.index("--") if "--" in arguments else len(arguments)
options = parser.parse_args(arguments[:split])
flags = arguments[split + 1:]
os.environ["OLRANK_PROGRAM"] = str((options.bin / "olrank").resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "serve"))
from running_service import RunningService, processor_seconds, resident_bytes  # noqa: E402

draw = random.Random(1)
STALLED_AFTER = 120  # seconds in which nothing is learned


def document():
    return [round(draw.random(), 3) for _ in range(options.features)]


def write_records(path):
    hidden = [draw.gauss(0.0, 1.0) for _ in range(options.features)]
    pools = []
    for query in range(options.queries):
        docs = [document() for _ in range(options.pool)]
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
                require_disk(path.parent, 2.1 * options.records * len(record))
            log.write(record)


def require_disk(folder, needed):
    free = shutil.disk_usage(folder).free
    if free < needed:
        sys.exit(f"service_growth.py: {folder} has {free / 1e9:.1f} GB free, but the records and the service's copy need "
                 f"{needed / 1e9:.1f} GB: choose another --folder or fewer --records.")


class Client:
    """Ranks at a steady rate and keeps when each answer came and how many seconds it took."""

    def __init__(self, address):
        self.address = address
        self.bodies = [json.dumps({"query": f"new{number}", "docs": [{"id": f"d{doc}", "features": document()}
                                                                   for doc in range(options.candidates)]}) for number in range(8)]
        self.answers = []
        self.ended = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        try:
            self.rank()
        except Exception as error:  # raised again by the thread that measures
            self.failure = error

    def rank(self):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        for number in range(1 << 60):
            begin = time.perf_counter()
            connection.request("POST", "/v1/rank", self.bodies[number % len(self.bodies)], {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(f"A ranking was answered with {response.status}: {answer.decode(errors='replace')}")
            end = time.perf_counter()
            self.answers.append((end, end - begin))
            if self.ended.wait(max(0.0, 1.0 / options.rate - (end - begin))):
                return


def rounds_learned(connection):
    connection.request("GET", "/metrics")
    return int(re.search(r"^olrank_rounds_total (\d+)", connection.getresponse().read().decode(), re.M).group(1))


def require_progress(latest, progressed, client, service):
    """Ends the measurement where the service or the client has failed, or learning has stopped."""
    if client.failure:
        raise RuntimeError("The client that ranks has failed.") from client.failure
    if service.process.poll() is not None:
        raise RuntimeError(f"The service ended with exit code {service.process.returncode} after round {latest[1]}: {service.messages()}")
    if latest[0] - progressed > STALLED_AFTER:
        raise RuntimeError(f"Nothing was learned in {STALLED_AFTER} seconds after round {latest[1]}: {service.messages()}")


def percentile(values, share):
    """None without values, which JSON writes as null."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else None


def milliseconds(value):
    return "-" if value is None else f"{value:.2f}"


def measure(folder):
    log, state = folder / "records.jsonl", folder / "state"
    if state.exists():
        sys.exit(f"service_growth.py: {state} is there from an earlier run: remove it or choose another --folder.")
    write_records(log)
    begin = time.perf_counter()
    service = RunningService(state, "--features", options.features, "--import-log", log, *flags)
    try:
        started = time.perf_counter() - begin
        client = Client(service.address)
        connection = http.client.HTTPConnection(*service.address, timeout=600)

        def look():
            saved = state / "checkpoint"
            return (time.perf_counter(), rounds_learned(connection), processor_seconds(service.process), resident_bytes(service.process),
                    saved.stat().st_size if saved.exists() else 0)

        seen = [look()]
        progressed = seen[0][0]
        client.thread.start()
        while seen[-1][1] < options.records:
            time.sleep(0.1)
            seen.append(look())
            if seen[-1][1] > seen[-2][1]:
                progressed = seen[-1][0]
            require_progress(seen[-1], progressed, client, service)
        client.ended.set()
        client.thread.join()
        if client.failure:
            raise RuntimeError("The client that ranks has failed.") from client.failure
    finally:
        service.stop()
    print(f"{options.records} records imported and checked in {started:.1f} s; {' '.join(flags)}")
    print("rounds            learned/s  CPU ms/round  rankings   p50 ms   p99 ms  memory MB  checkpoint MB")
    windows = []
    for window in range(options.windows):
        first, last = (options.records * (window + one) // options.windows for one in (0, 1))
        since = max(one for one in seen if one[1] <= first) if seen[0][1] <= first else seen[0]
        until = min(one for one in seen if one[1] >= last)
        times = [1000 * taken for at, taken in client.answers if since[0] < at <= until[0]]
        learned = until[1] - since[1]
        windows.append({"from": since[1], "to": until[1], "learned_per_second": learned / max(1e-9, until[0] - since[0]),
                        "cpu_ms_per_round": 1000 * (until[2] - since[2]) / max(1, learned), "rankings": len(times),
                        "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99), "resident_bytes": until[3],
                        "checkpoint_bytes": until[4]})
        row = windows[-1]
        print(f"{row['from']:8}-{row['to']:8} {row['learned_per_second']:10.1f} {row['cpu_ms_per_round']:13.3f} {row['rankings']:9} "
              f"{milliseconds(row['p50_ms']):>8} {milliseconds(row['p99_ms']):>8} {row['resident_bytes'] / 1e6:10.1f} {row['checkpoint_bytes'] / 1e6:14.1f}")
    if options.json:
        options.json.write_text(json.dumps({"records": options.records, "flags": flags, "start_seconds": started, "windows": windows},
                                           indent=2, allow_nan=False) + "\n")


if options.folder:
    options.folder.mkdir(parents=True, exist_ok=True)
    measure(options.folder)
else:
    with tempfile.TemporaryDirectory() as temporary:
        measure(pathlib.Path(temporary))
