"""Reads what the card says of itself while the steps run, and what Nsight Compute says of a program."""

from __future__ import annotations

import contextlib
import csv
import datetime
import os
import shutil
import statistics
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

from evidence.programs import environment

CARD = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "power.limit",
        "temperature.gpu", "mig.mode.current", "compute_mode")
SAMPLED = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "utilization.gpu")
# Newer and older drivers name the reasons differently.
REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
REASONS = {0x2: "application clocks", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal slowdown",
           0x40: "hardware thermal slowdown", 0x80: "power brake", 0x100: "display clocks"}
INTERVAL = 200  # milliseconds between samples


def which_card() -> list[str]:
    """The argument that makes nvidia-smi speak of the card that the programs use."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return ["-i", first or "0"]


def query(fields: Iterable[str], *flags: str) -> list[str]:
    return ["nvidia-smi", *which_card(), f"--query-gpu={','.join(fields)}", f"--format=csv,noheader{',nounits' if flags else ''}", *flags]


def reason_field() -> str | None:
    """The name that this driver has for the reasons of lower clocks; none if nvidia-smi does not work."""
    if not shutil.which("nvidia-smi"):
        return None
    for field in REASON_FIELDS:
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            if subprocess.run(query([field]), capture_output=True, text=True, check=False, timeout=10, env=environment()).returncode == 0:
                return field
    return None


class Sampler:
    """Samples clocks, power, temperature and the reasons of lower clocks while it is open. Without nvidia-smi it has none."""

    def __init__(self, file: Path | None) -> None:
        self.samples: list[tuple[datetime.datetime, list[float | None], int]] = []
        self.file, self.process, self.thread, self.complaint = file, None, None, ""

    def __enter__(self) -> Sampler:
        field = reason_field() if self.file else None
        if self.file and not field:
            self.complaint = "clocks, power and temperature are not sampled, as nvidia-smi does not answer"
        if field:
            command = query(["timestamp", *SAMPLED, field], "-lms", str(INTERVAL))
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                            text=True, errors="replace", start_new_session=True, env=environment())
            self.thread = threading.Thread(target=self.read, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=5)
            self.thread.join(timeout=5)
            self.process.stdout.close()

    def read(self) -> None:
        with open(self.file, "a", encoding="utf-8") as kept:
            if not kept.tell():
                kept.write(",".join(["timestamp", *SAMPLED, "reasons"]) + "\n")
            for line in self.process.stdout:
                kept.write(line)
                kept.flush()
                with contextlib.suppress(ValueError):
                    self.samples.append(sample_of(line))

    def between(self, begin: datetime.datetime, end: datetime.datetime) -> dict | None:
        """Least, median and largest values of a span, and the share of its samples with each reason of lower clocks."""
        inside = [(values, reasons) for when, values, reasons in list(self.samples) if begin <= when <= end]
        if not inside:
            return None
        found: dict[str, object] = {"samples": len(inside)}
        for place, name in enumerate(SAMPLED):
            known = [values[place] for values, _ in inside if values[place] is not None]
            if known:
                found[name] = [min(known), statistics.median(known), max(known)]
        held = {name: sum(bool(reasons & bit) for _, reasons in inside) / len(inside) for bit, name in REASONS.items()}
        found["lower clocks"] = {name: share for name, share in held.items() if share > 0}
        return found


def sample_of(line: str) -> tuple[datetime.datetime, list[float | None], int]:
    when, *values, reasons = [cell.strip() for cell in line.split(",")]
    if len(values) != len(SAMPLED):
        raise ValueError(line)
    numbers = [float(value) if value.replace(".", "", 1).isdigit() else None for value in values]
    return datetime.datetime.strptime(when, "%Y/%m/%d %H:%M:%S.%f"), numbers, int(reasons, 16)


# Nsight Compute reports of a kernel in these sections, and these counters of it are shown.
SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "Occupancy", "LaunchStats", "WarpStateStats")
COUNTERS = ("Duration", "Compute (SM) Throughput", "Memory Throughput", "DRAM Throughput", "L2 Cache Throughput", "Achieved Occupancy",
            "Registers Per Thread", "Grid Size", "Block Size", "Dynamic Shared Memory Per Block")


def plain_name(kernel: str) -> str:
    """Without namespaces, template arguments and parameters."""
    for unnamed in ("(anonymous namespace)::", "<unnamed>::"):
        kernel = kernel.replace(unnamed, "")
    return kernel.partition("(")[0].partition("<")[0].rpartition("::")[2].strip()


def counters_of(report: str) -> list[dict[str, str]]:
    """The kernels of a CSV report of Nsight Compute, in order of launch, each with its counters and their units."""
    lines = report.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    kernels: dict[str, dict[str, str]] = {}
    for row in csv.DictReader(lines[begin:]):
        if row.get("Metric Name") not in COUNTERS:
            continue
        kernel = kernels.setdefault(row["ID"], {"kernel": plain_name(row["Kernel Name"])})
        kernel.setdefault(row["Metric Name"], f"{row['Metric Value']} {row['Metric Unit']}".strip())
    return list(kernels.values())
