"""The page in a browser at two widths, in light and dark mode: nothing is wider than the screen, no label is cut off or overlaps
another, and the console has no errors."""

import itertools
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("apps", "serve")]
import browser  # noqa: E402
from command_line import InFolder, succeed  # noqa: E402

from synthetic_experiment import ranker, write_experiment, write_study  # noqa: E402

PROBE = """(() => {
  document.querySelectorAll('details').forEach(details => details.open = true);
  const found = [], width = document.documentElement.clientWidth;
  const report = text => { if (found.length < 200) found.push(text); };
  if (document.documentElement.scrollWidth > width) report('the page is ' + document.documentElement.scrollWidth + ' wide');
  for (const element of document.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && !element.closest('.scroll') && (box.right > width + 0.5 || box.left < -0.5))
      report(element.tagName + ' reaches ' + box.left + ' to ' + box.right + ': ' + element.textContent.slice(0, 60));
  }
  let labels = 0, smallest = 99;
  for (const chart of document.querySelectorAll('svg.chart')) {
    const frame = chart.getBoundingClientRect(), texts = [...chart.querySelectorAll('text')];
    const name = chart.querySelector('title').textContent;
    const boxes = texts.map(text => text.getBoundingClientRect());
    smallest = Math.min(smallest, 11 * frame.width / chart.viewBox.baseVal.width);
    boxes.forEach((box, i) => {
      labels += 1;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        report(name + ': "' + texts[i].textContent + '" is cut off');
      boxes.slice(0, i).forEach((other, j) => {
        const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (across > 1 && down > 4)  // a line box is taller than its letters
          report(name + ': "' + texts[i].textContent + '" overlaps "' + texts[j].textContent + '"');
      });
    });
  }
  return {width, found, labels, smallest, ground: getComputedStyle(document.body).backgroundColor};
})()"""

FAULTS = (("the page is", "<main>", "<main><div style='width:3000px'>wide</div>"),
          ("cut off", "</svg>", "<text x='390' y='60'>beyond the edge</text></svg>"),
          ("overlaps", "</svg>", "<text x='9' y='100'>one</text><text x='9' y='103'>two</text></svg>"),
          ("nowhere", "<main>", "<main><script>nowhere()</script>"))


@unittest.skipUnless(browser.PROGRAM, "Chromium is not installed")
class Rendering(InFolder):
    def measured(self, page, width, dark):
        """Returns what the page has after layout, with its faults and the console's."""
        place = f"{page.as_uri()}?{next(self.numbers)}"
        self.tab.open(place, width, dark)
        self.tab.wait_for(f"document.readyState == 'complete' && location.href == '{place}'")
        seen = self.tab.value(PROBE)
        seen["found"] += self.tab.problems
        self.tab.problems.clear()
        return seen

    def experiments(self):
        names = ["full-covariance", "diagonal", "p2neurrank-N=2", "epsilon-greedy", "pdgd", "dbgd", "mgd", "skyline",
                 "a-ranker-with-quite-a-long-name+alpha=0.001+lambda=100", "MMMMMMMMMMMMMMMMMMMMMMMM"]
        yield write_experiment(self.folder / "few", extras=True)
        yield write_experiment(self.folder / "many", [ranker(name) for name in names], users=("perfect", "informational"),
                               folds=(1, 2, 3), seeds=(1, 2), extras=True, height=[0.45] * 9 + [0.2],
                               unfinished=[("pdgd", "perfect", 2, 1)], data={"source": "runs/" + "very-long-folder/" * 12})
        yield write_study(self.folder / "study", seeds=range(1, 6), extras=True)
        yield write_experiment(self.folder / "single", [ranker("alone")], seeds=(1,))

    def test_nothing_overflows_or_overlaps(self):
        self.numbers, self.tab = itertools.count(), self.enterContext(browser.Browser())
        for experiment in self.experiments():
            succeed("report", "--quiet", experiment)
            grounds = {}
            for width, dark in itertools.product((1280, 390), (False, True)):
                with self.subTest(experiment=experiment.name, width=width, dark=dark):
                    seen = self.measured(experiment / "report.html", width, dark)
                    grounds.setdefault(dark, set()).add(seen["ground"])
                    self.assertEqual((seen["found"], seen["width"]), ([], width))
                    self.assertGreaterEqual(seen["labels"], 30)
                    self.assertGreaterEqual(seen["smallest"], 9)  # pixels
            self.assertEqual([len(one) for one in grounds.values()], [1, 1])
            self.assertNotEqual(grounds[False], grounds[True])
        whole, broken = (self.folder / "few" / "report.html").read_text(), self.folder / "broken.html"
        for fault, before, after in FAULTS:
            broken.write_text(whole.replace(before, after))
            self.assertIn(fault, "\n".join(self.measured(broken, 390, False)["found"]))


if __name__ == "__main__":
    unittest.main()
