"""A log whose closed parts are compressed is one log for every program that reads it."""

import json
import pathlib
import random
import time
import unittest

from running_service import ServiceTest, Users, learned_state, olrank, succeed, wait_until

FLAGS = ("--ranker", "clickgp", "--features", 6, "--log-unshown")


class Segments(ServiceTest):
    def segments(self, state=None, name="feedback"):
        return sorted(path.name for path in (state or self.state).glob(f"{name}-*.jsonl*"))

    def learned(self, state):
        return json.loads(succeed("serve", "--state", state, "--learn-only", "--json"))["fingerprint"]

    def impressions(self, log):
        return [json.loads(line)["impression"] for line in succeed("log", "show", "--log", log, "--json").splitlines()]

    def test_every_program_reads_both_forms(self):
        service = self.start(*FLAGS)
        self.play(service, 60)
        with service.client() as client:
            client.put_docs([{"id": "stored", "features": [1, 2, 3, 4, 5, 6]}])
        service.stop()
        (self.state / "checkpoint").unlink()
        folders = [self.state, self.folder / "compact"]
        succeed("log", "backup", "--state", self.state, "--out", folders[1])
        before = json.loads(succeed("log", "compact", "--state", folders[1], "--json"))
        self.assertEqual(before["records"], 60)
        self.assertLess(before["bytes"], before["bytes_before"])
        self.assertEqual((self.segments(self.state), self.segments(folders[1])), ([], ["feedback-000000000000000.jsonl.zst"]))
        self.assertEqual(self.segments(folders[1], "documents"), ["documents-000000000000000.jsonl.zst"])
        for command in (["log", "stats"], ["log", "show", "--limit", "3"], ["clicks", "fit", "--model", "pbm"],
                        ["ope", "--policy", "incumbent", "--estimators", "ips"], ["ope", "--policy", "candidate"]):
            done = [olrank(*command, "--log", folder) for folder in folders]
            self.assertEqual(*((one.returncode, one.stdout.replace(str(folder), ""), one.stderr.replace(str(folder), ""))
                               for one, folder in zip(done, folders)), command)
        copies = []
        for folder in folders:
            copies.append(self.folder / f"{folder.name}.jsonl")
            succeed("log", "cut", "--log", folder, "--from-round", "1", "--out", copies[-1])
        self.assertEqual(copies[0].read_bytes(), copies[1].read_bytes())
        self.assertEqual(copies[0].read_bytes(), (self.state / "feedback.jsonl").read_bytes())
        self.assertEqual(learned_state(folders[0]), learned_state(folders[1]))
        copy = self.folder / "copy"
        succeed("log", "backup", "--state", folders[1], "--out", copy)
        self.assertEqual(*(self.learned(folder) for folder in (folders[0], copy)))
        # A start goes on where either form ends, and rounds are taken back from either.
        for folder in folders:
            moved = json.loads(succeed("log", "cut", "--state", folder, "--to-round", "40", "--json"))
            self.assertEqual(moved["records"], 20)
            self.assertEqual(pathlib.Path(moved["moved_to"]).read_bytes(), b"".join(copies[0].read_bytes().splitlines(True)[40:]))
            service = self.start(state=folder)
            self.play(service, 5, seed=7)
            service.stop()
            self.assertEqual(len(self.impressions(folder)), 45)

    def test_dropped_rounds_are_never_silently_gone(self):
        flags = ("--segment", "6kB", "--keep", "checkpoint", "--impression-seconds", 1, "--checkpoint-every", 5)
        service = self.start(*FLAGS, *flags)
        self.play(service, 40)
        time.sleep(1.2)
        self.play(service, 40, seed=2)
        wait_until(lambda: "which a checkpoint has learned." in service.messages(), "nothing is dropped")
        self.assertRegex(service.messages(), "Dropped rounds 1 to [0-9]+, which a checkpoint has learned.")
        self.assertNotIn("feedback-000000000000000.jsonl.zst", self.segments())
        service.kill()
        service = self.start()
        self.assertRegex(service.messages(), "Rounds 1 to [0-9]+ were dropped by --keep: this state cannot be learned again from its first round, "
                                             "so keep its checkpoint.")
        with service.client() as client:
            fingerprint = client.wait_until_learned()["fingerprint"]
        service.stop()
        done = olrank("log", "stats", "--log", self.state)
        self.assertRegex(done.stderr, "The log begins with round [0-9]+: earlier ones were dropped.")
        copy = self.folder / "copy"
        succeed("log", "backup", "--state", self.state, "--out", copy)
        self.assertEqual(self.learned(copy), fingerprint)
        self.assertRegex(olrank("log", "cut", "--state", copy, "--to-round", "79").stderr, "restore a backup of that time")
        # A start on the copy closes segments of its own.
        third = self.folder / "third"
        succeed("log", "backup", "--state", copy, "--out", third)
        service = self.start("--segment", "6kB", state=third)
        self.play(service, 40, seed=3)
        with service.client() as client:
            client.wait_until_learned()
        service.stop()
        self.assertEqual(len(set(self.impressions(third))), len(self.impressions(third)))
        (copy / "checkpoint").rename(self.folder / "checkpoint")
        message = self.refused(state=copy, code=1)
        self.assertRegex(message, "Rounds 1 to [0-9]+ were dropped from this log, and no checkpoint that fits has learned them. Put the checkpoint back")
        other = self.folder / "other"
        done = olrank("serve", "--state", other, *FLAGS, "--import-log", copy / "feedback.jsonl", "--learn-only")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(": earlier ones were dropped.", done.stderr)

    def test_lists_of_windows_are_logged_once_whatever_is_dropped(self):
        flags = ("--segment", "6kB", "--keep", "checkpoint", "--checkpoint-every", 5, "--window", 1)
        service = self.start(*FLAGS, *flags)
        for seed in (1, 2):
            with service.client() as client:
                users, draw = Users(seed, 6), random.Random(seed)
                for _ in range(40):
                    client.feedback(*users.ask(client, draw))
            time.sleep(2.5)
        service.stop()
        service = self.start(*flags)
        time.sleep(1.5)
        service.stop()
        logged = self.impressions(self.state)
        self.assertEqual(len(set(logged)), len(logged))
        self.assertEqual(json.loads(succeed("serve", "--state", self.state, "--learn-only", "--json"))["rounds"], 80)


if __name__ == "__main__":
    unittest.main()
