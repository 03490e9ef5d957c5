"""The site of scripts/docs is made without a warning and loads nothing from a network; opened from its folder in Chromium,
its search finds a page, and no page is wider than a phone. Skips where Zensical cannot be fetched."""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
import browser  # noqa: E402

LOADED = re.compile(r'<(?:script|img|source|iframe|link rel="stylesheet")[^>]*(?:src|srcset|href)="?(https?:[^" >]+)')


def complaints(html):
    pages = sorted(html.rglob("*.html"))
    for page in pages:
        for url in LOADED.findall(page.read_text()):
            yield f"{page.name} loads {url}"
    if 'id="olrank.Ranker.learn"' not in (html / "docs/PYTHON-REFERENCE.html").read_text():
        yield "the Python reference does not have the methods of the package"
    if len(pages) < 20:
        yield f"there are only {len(pages)} pages"
    if not browser.PROGRAM:
        print("Chromium is not installed: the search was not tried.")
        return
    with browser.Browser() as window:
        for page in ("index.html", "docs/MATH.html", "docs/CONFIGURATION.html", "docs/PYTHON-REFERENCE.html"):
            window.open((html / page).as_uri(), width=390, dark=True)
            window.wait_for("document.body?.getAttribute('data-md-color-scheme') === 'slate'")
            if window.value("document.documentElement.scrollWidth") > 390:
                yield f"{page} is wider than a phone"
        window.open((html / "index.html").as_uri(), dark=True)
        window.wait_for("document.querySelector('picture img')?.complete")
        if not window.value("document.querySelector('picture img').currentSrc").endswith("-dark.svg"):
            yield "the picture of the first page is light on a dark page"
        window.wait_for("!!document.querySelector('.md-search__button')")
        window.value("document.querySelector('.md-search__button').click()")
        dialog = "[...document.body.children].find((one) => one.shadowRoot)?.shadowRoot"
        window.wait_for(f"{dialog}?.activeElement?.matches('input')")
        window.call("Input.insertText", text="MacKay")
        window.wait_for(f"!!{dialog}.querySelector('a')")
        if "/docs/MATH.html" not in window.value(f"{dialog}.querySelector('a').href"):
            yield "the search does not find a word of docs/MATH.md"
        yield from window.problems


with tempfile.TemporaryDirectory() as folder:
    made = subprocess.run(["scripts/docs", folder], capture_output=True, text=True)
    if made.returncode == 77:
        print(made.stderr.strip())
        sys.exit(77)
    found = [made.stderr.strip()] if made.returncode else list(complaints(pathlib.Path(folder) / "html"))
print("\n".join(found) or "The site is whole.")
sys.exit(1 if found else 0)
