"""compose.yaml's service, without a container: its entry point makes a token for its user only, keeps it, and starts the service
with it; its health check tells a running service from none. scripts/check-container tries the same in a container."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from running_service import PROGRAM, free_port

text = pathlib.Path("compose.yaml").read_text(encoding="utf-8")
port = str(free_port())


def words_of(key):
    if key == "command":
        return re.search(r"^    command: >\n((?:      .*\n)+)", text, re.MULTILINE)[1].split()
    return [word.replace("$$", "$") for word in json.loads(re.search(rf"^ +{key}: (\[.*\])$", text, re.MULTILINE)[1])]


def status(token):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/stats", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=900) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


volumes = re.findall(r"^      - \w+:(/\w+)$", text, re.MULTILINE)
assert volumes == ["/state", "/token"], volumes
assert re.search(r"install -d [^&]*-m 700 -o 10001 -g 10001 /token$", pathlib.Path("Dockerfile").read_text(), re.MULTILINE)

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "olrank").symlink_to(PROGRAM)
    for volume in volumes:
        (folder / volume[1:]).mkdir()

    def here(words):
        words = [word.replace("8080", port).replace("0.0.0.0", "127.0.0.1") for word in words]
        return [re.sub(r"(?<!\w)/(state|token)\b", lambda volume: f"{folder}{volume[0]}", word) for word in words]

    start = here(words_of("entrypoint") + words_of("command"))
    health = here(words_of("test"))
    assert health.pop(0) == "CMD"
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    tokens = []
    for umask in (0o022, 0):
        assert subprocess.run(health, capture_output=True).returncode != 0
        service = subprocess.Popen(start, env=environment, stdout=subprocess.PIPE, text=True, umask=umask)
        try:
            assert service.stdout.readline() == f"http://127.0.0.1:{port}\n"
            assert subprocess.run(health).returncode == 0
            file = folder / "token" / "token"
            assert file.stat().st_mode & 0o777 == 0o600, oct(file.stat().st_mode)
            tokens.append(file.read_text().strip())
            assert (status(tokens[0]), status("another")) == (200, 401)
        finally:
            service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=900) == 0  # the entry point is the service itself, so that it gets the signal
        service.stdout.close()
    assert tokens[0] == tokens[1] and len(tokens[0]) == 32, tokens

    # A token of one's own, by the command at the top of the file.
    own = re.search(r"--entrypoint bash olrank -c '(.*)' < token", text)[1]
    file.unlink()
    subprocess.run(["bash", "-c", *here([own])], input=b"my own\n", check=True)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("my own\n", 0o600)

for arguments in (["--engine", "rocket"], ["--base"], ["--base", "a", "--debootstrap"], ["--bottle"]):
    done = subprocess.run(["scripts/check-container", *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("olrank: ") and done.stderr.count("\n") == 1, (arguments, done)
print("the token is for its user only, and kept")
