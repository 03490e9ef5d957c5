"""The page rendered by a browser at two widths, in light and dark mode: nothing is wider than the screen, no label is cut off or
overlaps another, and the console has no errors."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from synthetic_experiment import ranker, write_experiment, write_study

PROGRAM = os.environ["OLRANK_PROGRAM"]
BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
SCHEMES = {"light": 1, "dark": 0}  # the numbers of the browser's switch

# Measures the page after layout and stores the findings in the document.
PROBE = """<script>
window.addEventListener('load', () => {
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
  const tables = [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth).length;
  const ground = getComputedStyle(document.body).backgroundColor;
  parent.document.body.setAttribute('data-probe', JSON.stringify({width, found, labels, smallest, ground, tables}));
});
</script>"""


def skip(reason):
    print(f"report/page_rendering ... skipped '{reason}'")
    sys.exit(77)


def framed(page, width):
    """The page in a frame, because a browser window cannot be as narrow as a phone."""
    probed = page.read_text().replace("</body>", PROBE + "</body>")
    frame = page.with_name(f"frame{width}.html")
    frame.write_text("<!DOCTYPE html><html style='color-scheme:light dark'><meta charset='utf-8'><body style='margin:0'>"
                     f"<iframe style='border:0;width:{width}px;height:900px' srcdoc=\"{html.escape(probed)}\"></iframe></body>")
    return frame


def measure(page, width, scheme, folder):
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
         f"--user-data-dir={folder}/profile", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
         "--window-size=1400,900", "--virtual-time-budget=5000", "--dump-dom", framed(page, width).as_uri()],
        capture_output=True, text=True, timeout=900)
    probe = re.search(r'<body[^>]* data-probe="([^"]*)"', done.stdout)
    if probe is None:
        sys.exit(f"the browser did not render the page ({done.returncode}): {done.stderr[-2000:]}")
    return json.loads(html.unescape(probe[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def experiments(folder):
    names = ["full-covariance", "diagonal", "p2neurrank-N=2", "epsilon-greedy", "pdgd", "dbgd", "mgd", "skyline",
             "a-ranker-with-quite-a-long-name+alpha=0.001+lambda=100", "MMMMMMMMMMMMMMMMMMMMMMMM"]
    yield "few", write_experiment(folder / "few", extras=True)
    yield "many", write_experiment(folder / "many", [ranker(name) for name in names], users=("perfect", "informational"),
                                   folds=(1, 2, 3), seeds=(1, 2), extras=True, height=[0.45] * 9 + [0.2],
                                   unfinished=[("pdgd", "perfect", 2, 1)], data={"source": "runs/" + "very-long-folder/" * 12})
    yield "study", write_study(folder / "study", seeds=range(1, 6), extras=True)
    yield "single", write_experiment(folder / "single", [ranker("alone")], seeds=(1,))


def undetected_faults(experiment, folder):
    """Faults injected into the page that the probe misses."""
    whole = (experiment / "report.html").read_text()
    broken = experiment / "broken.html"
    for fault, before, after in (
            ("the page is", "<main>", "<main><div style='width:3000px'>wide</div>"),
            ("cut off", "</svg>", "<text x='390' y='60'>beyond the edge</text></svg>"),
            ("overlaps", "</svg>", "<text x='9' y='100'>one</text><text x='9' y='103'>two</text></svg>"),
            ("CONSOLE", "<main>", "<main><script>nowhere()</script>")):
        broken.write_text(whole.replace(before, after))
        seen, console = measure(broken, 390, "light", folder)
        if not any(fault in text for text in seen["found"] + console):
            yield f"the probe missed a fault: {fault}"


def main():
    if BROWSER is None:
        skip("Chromium is not installed")
    complaints = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, experiment in experiments(folder):
            subprocess.run([PROGRAM, "report", "--quiet", str(experiment)], check=True, stdout=subprocess.DEVNULL)
            grounds = set()
            for width in (1280, 390):
                for scheme in SCHEMES:
                    seen, console = measure(experiment / "report.html", width, scheme, folder)
                    grounds.add((scheme, seen["ground"]))
                    place = f"{name}, {width} pixels, {scheme}"
                    complaints += [f"{place}: {text}" for text in seen["found"] + console]
                    if seen["width"] != width:
                        complaints.append(f"{place}: the browser rendered {seen['width']} pixels")
                    if seen["labels"] < 30 or seen["smallest"] < 9:
                        complaints.append(f"{place}: {seen['labels']} labels, the smallest {seen['smallest']} pixels high")
                    print(f"{place}: {seen['labels']} labels, {seen['tables']} scrolling tables")
            if name == "few":
                complaints += undetected_faults(experiment, folder)
            if len(grounds) != 2 or len({ground for _, ground in grounds}) != 2:
                complaints.append(f"{name}: light and dark do not differ: {grounds}")
    print("\n".join(complaints) or "nothing overflows or overlaps")
    sys.exit(1 if complaints else 0)


main()
