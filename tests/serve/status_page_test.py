"""The page at `/`: what it may do, what it is told, and, where Chromium is installed, what a person sees."""

import base64
import hashlib
import html.parser
import json
import re
import unittest
import urllib.error
import urllib.request

import browser
from running_service import ServiceTest, Users

RANKER = ["--ranker", "olranknet", "--features", "6", "--width", "6", "--steps", "4"]
MARKUP = "<img src=x onerror=\"document.title='taken'\">"


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def sha256(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


class PageTest(ServiceTest):
    def play(self, service, rounds, token=None):
        super().play(service, rounds, token=token)
        with service.client(token=token) as client:
            client.rank(MARKUP, Users(2, 6).queries[0], k=15)

    def get(self, url, **headers):
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=900) as answer:
            return answer.headers, answer.read().decode()


class Document(PageTest):
    def test_may_do_nothing_but_ask_its_service(self):
        headers, page = self.get(self.start(*RANKER).url + "/")
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        (style,), (script,) = (re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL) for tag in ("style", "script"))
        self.assertEqual(policy, {"default-src": "'none'", "script-src": sha256(script), "style-src": sha256(style),
                                  "connect-src": "'self'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
                                  "frame-ancestors": "'none'"})
        for tag, attributes in Tags(page).tags:
            self.assertFalse([name for name in attributes if name == "style" or name.startswith("on")], tag)
            self.assertNotIn(tag, ("iframe", "object", "embed", "base", "a", "img"))
            self.assertTrue(attributes.get("href", "data:").startswith("data:"), attributes)
            self.assertNotIn("src", attributes)
        self.assertFalse(re.findall(r"innerHTML|insertAdjacent|document\.write|eval|localStorage|sessionStorage|cookie", script))
        self.assertEqual(set(re.findall(r"fetch\(([^,)]*)", script)), {"'v1/overview'", "'v1/features'"})

    def test_holds_no_data_and_needs_no_token(self):
        service = self.start(*RANKER, "--token-file", self.token())
        self.play(service, 3, "the token")
        _, page = self.get(service.url + "/")
        self.assertNotIn("olranknet", page)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get(service.url + "/v1/overview")
        self.assertEqual(refused.exception.code, 401)
        refused.exception.close()
        self.assertEqual(json.loads(self.get(service.url + "/v1/overview", Authorization="Bearer the token")[1])["rounds"], 3)

    def test_overview_agrees_with_the_stats(self):
        service = self.start(*RANKER)
        empty = json.loads(self.get(service.url + "/v1/overview")[1])
        self.assertEqual((empty["rounds"], empty["certain_share"], empty["lists"], empty["history"]), (0, None, [], []))
        self.play(service, 300)
        now = json.loads(self.get(service.url + "/v1/overview")[1])
        with service.client() as client:
            stats = client.stats()
        for name in ("version", "features", "rounds", "log_rounds", "skipped_rounds", "pairs", "impressions", "open_impressions",
                     "feedback_accepted", "certain_share", "failure"):
            self.assertEqual(now[name], stats[name], name)
        self.assertEqual((now["ranker"], now["disk_rejects_feedback"]), ("olranknet", False))
        self.assertEqual(len(now["lists"]), 20)
        latest, earlier = now["lists"][:2]
        self.assertEqual((latest["query"], latest["shown"], len(latest["docs"]), latest["clicks"]), (MARKUP, 15, 10, None))
        self.assertEqual((earlier["shown"], len(earlier["docs"]), len(earlier["clicks"])), (5, 5, 5))
        self.assertTrue(all(0 <= one["seconds_ago"] < 60 and 0 <= one["certain_share"] <= 1 for one in now["lists"]))
        # 301 lists in at most 128 periods: 75 of four lists, and one that is not complete.
        self.assertEqual([one["lists"] for one in now["history"]], list(range(4, 301, 4)))
        self.assertTrue(all(0 <= one["certain_share"] <= 1 for one in now["history"]))
        self.assertEqual([(one["lists"], one["arms"][""]["lists"]) for one in now["clicks_history"]], [(32 * n, 32) for n in range(1, 10)])
        asked = [one["lists"] for one in now["queries"]]
        self.assertEqual((asked, len(asked), now["queries"][0]["own"], len(now["queries"][0]["best"])), (sorted(asked, reverse=True), 10, None, 10))
        effects = json.loads(self.get(service.url + "/v1/features")[1])
        self.assertEqual((effects["round"], sorted(one["name"] for one in effects["features"])), (300, ["1", "2", "3", "4", "5", "6"]))
        self.assertAlmostEqual(sum(one["share"] for one in effects["features"]), 1, 2)
        latencies = {one["path"]: one for one in now["latencies"]}
        self.assertEqual((latencies["/v1/rank"]["requests"], latencies["/v1/rank"]["errors"]), (301, 0))
        self.assertTrue(0 < latencies["/v1/rank"]["median"] <= latencies["/v1/rank"]["p99"])


@unittest.skipUnless(browser.PROGRAM, "Chromium is not installed")
class InABrowser(PageTest):
    def test_shows_the_service(self):
        service = self.start(*RANKER)
        self.play(service, 70)
        with browser.Browser() as tab:
            for width, dark in ((1280, False), (390, True)):
                tab.open(service.url + "/", width, dark)
                tab.wait_for("!document.getElementById('data').hidden && !document.getElementById('features').hidden")
                text = tab.value("document.body.innerText")
                for part in ("olranknet · 6 features", "All feedback is learned.", "rounds learned\n70", "lists shown, since the start\n71", "/v1/rank",
                             MARKUP, "awaiting feedback", "and 5 more", "✓ d", "The latest point: ", "Clicks a list", "list 64 with feedback",
                             "Features that count", "larger is", "Most asked queries", " lists"):
                    self.assertIn(part, text)
                self.assertEqual(tab.value("document.querySelectorAll('img').length"), 0)
                self.assertEqual(tab.value("document.title"), "olrank service")
                self.assertLessEqual(tab.value("document.documentElement.scrollWidth"), width)
                self.assertTrue(tab.value("(table => table.scrollWidth <= table.clientWidth)(document.querySelector('.scroll'))"))
                self.assertEqual(tab.value("getComputedStyle(document.body).backgroundColor"),
                                 "rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
            self.play(service, 5)
            tab.wait_for("document.body.innerText.includes('rounds learned\\n75')")
            self.assertEqual(tab.problems, [])
            service.kill()
            tab.wait_for("document.getElementById('state').textContent.startsWith('No answer since ')")

    def test_shows_the_exposure_of_groups(self):
        service = self.start("--ranker", "pairrank", "--features", "2", "--groups", "beta=1,epsilon=0.5")
        with service.client() as client:
            client.rank("q", [{"id": "a", "features": [1, 0], "group": "B"}])
        with browser.Browser() as tab:
            tab.open(service.url + "/")
            tab.wait_for("!document.getElementById('data').hidden")
            text = tab.value("document.body.innerText")
            for part in ("unfairness; fair up to ±0.5\n-1.00", "fair lists\n0.0 %", "exposure of A\n0", "exposure of B\n1"):
                self.assertIn(part, text)
            self.assertEqual(tab.problems, [])

    def test_asks_for_the_token(self):
        service = self.start(*RANKER, "--token-file", self.token())
        self.play(service, 4, "the token")

        def enter(text):
            tab.value(f"document.getElementById('token').value = '{text}'; document.querySelector('button').click()")

        with browser.Browser() as tab:
            tab.open(service.url + "/")
            tab.wait_for("!document.getElementById('entry').hidden")
            self.assertIn("This service requires its token.", tab.value("document.body.innerText"))
            self.assertNotIn("olranknet", tab.value("document.body.innerText"))
            enter("another token")
            tab.wait_for("document.body.innerText.includes('does not accept this token')")
            enter("the token")
            tab.wait_for("document.body.innerText.includes('rounds learned\\n4')")
            self.assertTrue(tab.value("document.getElementById('entry').hidden"))
            self.assertEqual(tab.value("location.href"), service.url + "/")
            self.assertEqual({problem.split(":")[-1].strip() for problem in tab.problems},
                             {"the server responded with a status of 401 (Unauthorized)"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
