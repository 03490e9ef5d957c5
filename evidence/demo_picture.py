#!/usr/bin/env python3
"""Records README's first picture: a game on the page of `olrank demo`, as an animated SVG of what Chromium showed.

    OLRANK_PROGRAM=build/bin/olrank python3 evidence/demo_picture.py docs/evidence/demo.svg
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "serve"))
import browser  # noqa: E402

ROUNDS = (0, 10, 20, 35, 50, 100)
WIDTH, HEIGHT, SECONDS = 920, 1080, 1.5


def frames(url):
    """The page after each of ROUNDS, as WebP in base 64."""
    with browser.Browser() as tab:
        tab.open(url + "/", WIDTH)
        tab.wait_for("!document.getElementById('taste').disabled && document.querySelector('.block') !== null")
        played = 0
        for rounds in ROUNDS:
            for played in range(played + 1, rounds + 1):
                tab.value("document.getElementById('once').click()")
                tab.wait_for(f"document.getElementById('state').textContent.startsWith('{played} round')")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
            yield tab.call("Page.captureScreenshot", format="webp", quality=30, captureBeyondViewport=True, clip=clip)["data"]


def main():
    process = subprocess.Popen([os.environ["OLRANK_PROGRAM"], "demo", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        images = list(frames(process.stdout.readline().strip()))
    finally:
        process.terminate()
        process.wait()
    total = SECONDS * (len(images) + 1)  # the last one stays twice as long
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             f"<title>Two rankers learn from the clicks of one person, over {ROUNDS[-1]} rounds</title>"]
    for i, image in enumerate(images):
        begin = i * SECONDS / total
        values, times = ("visible;hidden", f"0;{SECONDS / total:.4f}") if i == 0 else ("hidden;visible", f"0;{begin:.4f}")
        if 0 < i < len(images) - 1:
            values, times = "hidden;visible;hidden", f"0;{begin:.4f};{begin + SECONDS / total:.4f}"
        still = "visible" if i == len(images) - 1 else "hidden"  # where nothing moves
        lines.append(f'<image width="{WIDTH}" height="{HEIGHT}" visibility="{still}" href="data:image/webp;base64,{image}">'
                     f'<animate attributeName="visibility" dur="{total}s" repeatCount="indefinite" calcMode="discrete" '
                     f'values="{values}" keyTimes="{times}"/></image>')
    pathlib.Path(sys.argv[1]).write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
