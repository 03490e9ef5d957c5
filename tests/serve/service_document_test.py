"""The commands of a document about the service work when they are pasted in its order. Each section begins with the service of the first
block running; a block that ends by starting a service replaces it, and commands on a stopped service find it stopped."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from running_service import PROGRAM, free_port

for command in ("curl", "bash"):
    if not shutil.which(command):
        print(f"{command} is not installed")
        sys.exit(77)

port = str(free_port())  # another service may use the documented one
document = pathlib.Path("docs", sys.argv[1]).read_text(encoding="utf-8")
expected = sys.argv[2].split(",")  # in runs/ at the end
sections = [re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL) for section in re.split(r"^###? ", document, flags=re.MULTILINE)]


class Service:
    def __init__(self, line, folder, environment):
        self.process = subprocess.Popen(["bash", "-c", "exec " + line], cwd=folder, env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip()
        if self.url != f"http://127.0.0.1:{port}":
            self.process.kill()
            raise RuntimeError(f"{line}\n{self.process.communicate()[1]}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, messages = self.process.communicate(timeout=900)
        assert self.process.returncode == 0, messages


def keys(value):
    return sorted(value) if isinstance(value, dict) else None


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "olrank").symlink_to(PROGRAM)
    for used in ("clients", "examples"):
        (folder / used).symlink_to(pathlib.Path(used).resolve())
    # Without it, curl succeeds whatever the status.
    (folder / "strict").write_text('curl() { command curl --fail-with-body "$@"; }\n')
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "BASH_ENV": str(folder / "strict"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    first = None
    service = None
    curls = 0
    try:
        for section in sections:
            printed = []
            for language, block in section:
                block = block.replace("8080", port)
                if language == "json" and printed:
                    # The answers have the documented fields.
                    documented = [json.loads(line) for line in block.splitlines()]
                    answers = [json.loads(line) for line in printed if line.startswith("{")]
                    assert [keys(one) for one in documented] == [keys(one) for one in answers], (block, printed)
                    printed = []
                if language != "sh" or "bench/" in block:
                    continue
                *lines, last = block.strip().splitlines()
                starts = last.startswith("olrank serve") and "--learn-only" not in last
                if starts and first is None:
                    first = last
                stopped = any(part in block for part in ("olrank export --state", "olrank log cut --state", "--learn-only"))
                if service and stopped:
                    service.stop()
                    service = None
                if not starts:
                    lines.append(last)
                    if service is None and not stopped:
                        service = Service(first, folder, environment)
                if lines:
                    done = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], cwd=folder, env=environment,
                                          capture_output=True, text=True, timeout=900)
                    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
                    printed = done.stdout.splitlines()
                    curls += len(re.findall(r"\bcurl -", block))
                if starts:
                    if service:
                        service.stop()
                    service = Service(last.replace("olrank serve", f"olrank serve --port {port}"), folder, environment)
                    first = first if "--port" in first else first.replace("olrank serve", f"olrank serve --port {port}")
            if service:
                service.stop()
                service = None
        made = sorted(path.name for path in (folder / "runs").iterdir())
        assert made == expected, made
        assert curls >= int(sys.argv[3]), curls
        print(f"{curls} curl commands succeeded")
    finally:
        if service:
            service.process.kill()
            service.process.communicate()
