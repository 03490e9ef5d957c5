"""The files for a service of several processes fit together and the program: the Helm chart's objects (rendered here, since its
templates use little of Go's language, and by Helm itself where `helm_python` of PyPI's helm-python-sdk is installed; by
kubernetes-validate where that is), compose-replicas.yaml with its proxy, and the metrics that alerts and dashboard ask for. Redis, a
learner and a replica start with the very commands of the compose file."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from running_service import PROGRAM, Client, Users, free_port, wait_until

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

CHART = pathlib.Path("deploy/helm/olrank")
COMPOSE = yaml.safe_load(pathlib.Path("deploy/compose-replicas.yaml").read_text(encoding="utf-8"))
HELP = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
GIVEN = {"redis": {"address": "rediss://redis.example:6380"}, "arguments": ["--log-durability", "assume"],
         "learner": {"arguments": ["--features", 136], "storageClass": "fast"}}


def merged(values, more):
    return {key: merged(value, more.get(key, {})) if isinstance(value, dict) else more.get(key, value) for key, value in values.items()}


def rendered(template, scope):
    parts = re.split(r"\{\{ (.*?) \}\}", re.sub(r"\s*\{\{- ", "{{ ", template))

    def value(expression, item):
        form, path, quoted = re.fullmatch(r"(toJson )?(\.[\w.]*)( \| quote)?", expression).groups()
        found = item if path == "." else scope
        for key in filter(None, path.split(".")):
            found = found[key]
        return json.dumps(found) if form else json.dumps(str(found)) if quoted else found

    def block(place, item):
        """The text from `place` to the `else` or `end` of its block, and the place of that."""
        text = ""
        while True:
            text += parts[place]
            if place + 1 == len(parts) or parts[place + 1] in ("else", "end"):
                return text, place + 1
            action = parts[place + 1]
            if action.startswith(("if ", "range ")):
                keyword, *negated, expression = action.split()
                found = value(expression, item)
                items = found if keyword == "range" else [item] if bool(found) != bool(negated) else []
                inside = [block(place + 2, one)[0] for one in items]
                _, end = block(place + 2, None)
                if parts[end] == "else":
                    otherwise, end = block(end + 1, item)
                    inside = inside or [otherwise]
                text += "".join(inside)
                place = end + 1
            else:
                text += str(value(action, item))
                place += 2

    return block(0, None)[0]


def chart_objects(more):
    values = merged(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), more)
    scope = {"Values": values, "Release": {"Name": "shop"}}
    texts = [rendered(path.read_text(encoding="utf-8"), scope) for path in sorted((CHART / "templates").iterdir())]
    return {(one["kind"], one["metadata"]["name"]): one for text in texts for one in yaml.safe_load_all(text) if one}


class Chart(unittest.TestCase):
    def check_flags(self, arguments):
        for flag in (argument.split("=")[0] for argument in arguments if argument.startswith("--")):
            self.assertRegex(HELP, rf"(?m)^ +{flag}(?![\w-])")

    def test_objects_refer_to_each_other(self):
        for more in ({}, GIVEN):
            objects = chart_objects(more)
            kinds = sorted(kind for kind, _ in objects)
            workloads = {key: one for key, one in objects.items() if key[0] in ("Deployment", "StatefulSet")}
            self.assertEqual(kinds, sorted(["StatefulSet", "Deployment", "HorizontalPodAutoscaler"] + ["Service"] * 2 + ["PodDisruptionBudget"] * 2 +
                                           ["StatefulSet", "Service"] * (not more)))
            pods = {}  # labels → (ports, workload)
            for (kind, name), one in workloads.items():
                template = one["spec"]["template"]
                self.assertEqual(one["spec"]["selector"]["matchLabels"], template["metadata"]["labels"])
                container, = template["spec"]["containers"]
                mounts = {mount["name"] for mount in container["volumeMounts"]}
                volumes = template["spec"].get("volumes", []) + [claim["metadata"] for claim in one["spec"].get("volumeClaimTemplates", [])]
                self.assertEqual(mounts, {volume["name"] for volume in volumes}, name)
                ports = {port["name"]: port["containerPort"] for port in container["ports"]}
                for probe in (probe for key, probe in container.items() if key.endswith("Probe")):
                    asked = probe.get("httpGet", probe.get("tcpSocket"))
                    self.assertTrue(asked is None or asked["port"] in ports, probe)
                pods[frozenset(template["metadata"]["labels"].items())] = (ports, name)
                if kind == "StatefulSet":
                    self.assertIn(("Service", one["spec"]["serviceName"]), objects)
                if container["name"] == "olrank":
                    self.check_flags(container["args"])
                    address = GIVEN["redis"]["address"] if more else f"redis://shop-redis:{objects['Service', 'shop-redis']['spec']['ports'][0]['port']}"
                    self.assertIn(f"--log={address}/olrank", container["args"])
                    self.assertIn(f"--port={ports['http']}", container["args"])
            for (kind, name), one in objects.items():
                if kind in ("Service", "PodDisruptionBudget"):
                    selector = one["spec"]["selector"]
                    ports, _ = pods[frozenset(selector.get("matchLabels", selector).items())]
                    for port in one["spec"].get("ports", []):
                        self.assertIn(port["targetPort"], ports)
            target = objects["HorizontalPodAutoscaler", "shop-replica"]["spec"]["scaleTargetRef"]
            self.assertIn((target["kind"], target["name"]), workloads)
            self.assertNotIn("replicas", workloads["Deployment", "shop-replica"]["spec"])
            if more:
                learner = workloads["StatefulSet", "shop-learner"]["spec"]
                self.assertEqual(learner["template"]["spec"]["containers"][0]["args"][-4:], ["--log-durability", "assume", "--features", "136"])
                self.assertEqual(learner["volumeClaimTemplates"][0]["spec"]["storageClassName"], "fast")

    def test_helm_renders_the_same(self):
        try:
            import helm_python
        except ImportError:
            self.skipTest("helm-python-sdk is not installed")
        self.assertEqual(helm_python.lint(str(CHART), strict=True)["errors"], [])
        for more in ({}, GIVEN):
            texts = helm_python.Chart.load(str(CHART)).render(more, name="shop").values()
            documents = [one for text in texts for one in yaml.safe_load_all(text) if one]
            self.assertEqual({(one["kind"], one["metadata"]["name"]): one for one in documents}, chart_objects(more))

    def test_kubernetes_knows_every_field(self):
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("kubernetes-validate is not installed")
        for more in ({}, GIVEN):
            for one in chart_objects(more).values():
                kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


class Compose(unittest.TestCase):
    def setUp(self):
        if shutil.which("redis-server") is None:
            self.skipTest("redis-server is not installed")
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("token", "redis-password"):
            (self.folder / name).write_text(f"the-{name}\n")
        self.ports = [free_port() for _ in range(4)]

    def start(self, words, port=None):
        """A command of the file, with this folder's files and loopback's ports."""
        here = {"$$": "$", "/run/secrets/": f"{self.folder}/", "redis://redis:6379": f"redis://127.0.0.1:{self.ports[0]}", "0.0.0.0": "127.0.0.1",
                "dir /data": f"dir {self.folder}\nbind 127.0.0.1\nport {self.ports[0]}", "8080": str(port), "/state": str(self.folder / f"state-{port}")}
        for old, new in here.items():
            words = [word.replace(old, new) for word in words]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=900)
        process.stdout.close()
        assert code == 0, (process.args, code)

    def serve(self, service, port, *more):
        words = COMPOSE["services"][service]["command"].split()
        process = self.start([PROGRAM, *words, *more], port)
        self.assertEqual(process.stdout.readline(), f"http://127.0.0.1:{port}\n")
        client = Client(f"http://127.0.0.1:{port}", "the-token")
        client.wait_until_ready()
        return client

    def test_services_start_with_its_commands_and_have_the_metrics_of_alerts_and_dashboard(self):
        for name, secret in COMPOSE["secrets"].items():
            self.assertEqual(secret["file"], f"secrets/{name}")
        self.start(COMPOSE["services"]["redis"]["command"])
        health = COMPOSE["services"]["redis"]["healthcheck"]["test"][1:]
        health[-1] = health[-1].replace("$$", "$").replace("/run/secrets", str(self.folder)).replace("redis-cli", f"redis-cli -p {self.ports[0]}")
        wait_until(lambda: subprocess.run(health, stderr=subprocess.DEVNULL).returncode == 0, "redis is not healthy")
        self.assertEqual(COMPOSE["services"]["standby"]["command"], COMPOSE["services"]["learner"]["command"])

        learner = self.serve("learner", self.ports[1], "--arms", "learner=50,incumbent=50")
        replicas = [self.serve("replica", port) for port in self.ports[2:]]
        users = Users(1, 136, docs=4, queries=1)
        docs = users.queries[0]
        for user in range(120):
            client, other = replicas if user % 2 else replicas[::-1]
            answer = client.rank("q", docs, incumbent=[doc["id"] for doc in docs], user=user)
            self.assertFalse(other.feedback(answer["impression"], [0])["duplicate"])
        learner.wait_until_learned()
        metrics = "".join(client.metrics() for client in (learner, *replicas))
        panels = json.loads(pathlib.Path("deploy/grafana.json").read_text(encoding="utf-8"))["panels"]
        rules = [rule for group in yaml.safe_load(pathlib.Path("deploy/alerts.yaml").read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
        asked = {name for text in [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
                 for name in re.findall(r"olrank_\w+", text)}
        self.assertGreater(len(asked), 20)
        self.assertEqual([name for name in sorted(asked) if not re.search(rf"(?m)^{name}[ {{]", metrics)], [])

    def test_the_proxy_asks_the_replicas(self):
        text = pathlib.Path("deploy/haproxy.cfg").read_text(encoding="utf-8")
        service, port = re.search(r"server-template \S+ \d+ (\w+):(\d+)", text).groups()
        self.assertIn(f"--port {port}", COMPOSE["services"][service]["command"])
        published = COMPOSE["services"]["proxy"]["ports"][0].split(":")[-1]
        self.assertIn(f"bind :{published}\n", text)
        if shutil.which("haproxy") is not None:
            done = subprocess.run(["haproxy", "-c", "-f", "deploy/haproxy.cfg"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
