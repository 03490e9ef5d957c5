"""scripts/release, its parts that need no build: notes, bill of materials, sources and sums of a commit, the same in every run;
and what it refuses."""

import json
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = "7.8.9"
FILES = ("scripts/release", "scripts/install-packages", "third_party/wheels.lock", "pyproject.toml", "Dockerfile", ".gitattributes",
         "core/write_version.cmake", "python/tools/dependencies.py")


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.root = self.folder / "root"
        for name in FILES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "CMakeLists.txt").write_text(f"project(olrank VERSION {VERSION} LANGUAGES CXX)\n")
        (self.root / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} (2026-01-02)\n\n- **New**: this.\n\n## 7.8.8 (2026-01-01)\n\n- Old.\n")
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "-q", "--message", "All")

    def release(self, out="out"):
        arguments = [word for part in ("notes", "sbom", "sources") for word in ("--only", part)]
        return subprocess.run([self.root / "scripts/release", "--out", self.folder / out, *arguments], capture_output=True, text=True)

    def refused(self, sentence):
        done = self.release()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(sentence, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_makes_the_same_files_of_a_commit_in_every_run(self):
        for out in ("out", "again"):
            done = self.release(out)
            self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "out"
        names = sorted(path.name for path in out.iterdir())
        self.assertEqual(names, ["SHA256SUMS", f"olrank-{VERSION}-notes.md", f"olrank-{VERSION}-sbom.cdx.json", f"olrank-{VERSION}.tar.gz"])
        checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=out, capture_output=True, text=True)
        self.assertEqual(checked.stdout.count(": OK\n"), len(names) - 1, checked.stderr)
        for name in names:
            self.assertEqual((out / name).read_bytes(), (self.folder / "again" / name).read_bytes(), name)
        self.assertEqual((out / f"olrank-{VERSION}-notes.md").read_text(), f"# olrank {VERSION} (2026-01-02)\n\n- **New**: this.\n")
        with tarfile.open(out / f"olrank-{VERSION}.tar.gz") as archive:
            self.assertIn(f"olrank-{VERSION}/scripts/release", archive.getnames())
            # A build of the archive, which has no git, tells its commit.
            archive.extractall(self.folder / "unpacked", filter="data")
        source, made = self.folder / "unpacked" / f"olrank-{VERSION}", self.folder / "version.cpp"
        (source / "core/version.cpp.in").write_text("@OLRANK_REVISION@")
        subprocess.run(["cmake", f"-DSOURCE_DIR={source}", f"-DOUTPUT={made}", "-P", source / "core/write_version.cmake"], check=True)
        self.assertEqual(made.read_text().strip(), self.git("rev-parse", "--short=12", "HEAD").strip())

    def test_the_bill_of_materials_has_what_the_build_pins(self):
        self.assertEqual(self.release().returncode, 0)
        bill = json.loads((self.folder / "out" / f"olrank-{VERSION}-sbom.cdx.json").read_text())
        self.assertEqual(bill["metadata"]["component"]["version"], VERSION)
        parts = {part["name"]: part for part in bill["components"]}
        self.assertEqual(len(parts), len(bill["components"]))
        locked = [line.split() for line in (ROOT / "third_party/wheels.lock").read_text().splitlines() if line and line[0] != "#"]
        for _, project, _, digest in locked:
            self.assertEqual(parts[project]["hashes"], [{"alg": "SHA-256", "content": digest}])
        installed = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libfmt-dev"], capture_output=True, text=True, check=True).stdout
        self.assertEqual((parts["libfmt-dev"]["version"], parts["libfmt-dev"]["scope"], parts["g++"]["scope"]), (installed, "required", "excluded"))
        self.assertEqual((parts["nanobind"]["scope"], "version" in parts["numpy"], parts["debian"]["type"]), ("required", False, "container"))
        known = {part["bom-ref"] for part in bill["components"]}
        self.assertLess(set(bill["dependencies"][0]["dependsOn"]), known)

    def test_the_bill_of_materials_keeps_the_packages_of_another_system(self):
        self.assertEqual(self.release().returncode, 0)
        file = self.folder / "out" / f"olrank-{VERSION}-sbom.cdx.json"
        here = json.loads(file.read_text())
        openblas = next(part for part in here["components"] if part["name"] == "libopenblas-pthread-dev")
        other = re.sub("@.*", "@0.1-2?arch=amd64&distro=potato", openblas["purl"])
        for purl in (other, openblas["purl"].replace("@", "@0")):  # the second is an older version on this system
            here["components"].append(openblas | {"version": "0.1-2", "bom-ref": purl, "purl": purl})
        file.write_text(json.dumps(here))
        for _ in range(2):
            self.assertEqual(self.release().returncode, 0)
            both = json.loads(file.read_text())
            self.assertEqual([part["purl"] for part in both["components"] if part["name"] == openblas["name"]], [openblas["purl"], other])
            self.assertIn(other, both["dependencies"][0]["dependsOn"])

    def test_refuses_what_is_not_a_commit_with_notes(self):
        (self.root / "more").write_text("")
        self.refused("the checkout has uncommitted changes: commit or remove them")
        (self.root / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} (unreleased)\n\n- Something.\n")
        self.commit()
        self.refused(f'CHANGELOG.md has no section "## {VERSION} (YYYY-MM-DD)"')

    def test_refuses_a_folder_of_something_else(self):
        self.assertEqual(self.release().returncode, 0)
        (self.root / "more").write_text("")
        self.commit()
        self.refused(f"holds parts of another commit of {VERSION}")
        shutil.rmtree(self.folder / "out")
        (self.folder / "out").mkdir()
        (self.folder / "out" / "olrank-1.0.0.tar.gz").write_text("")
        self.refused("holds olrank-1.0.0.tar.gz, which is not of this release")


if __name__ == "__main__":
    unittest.main()
