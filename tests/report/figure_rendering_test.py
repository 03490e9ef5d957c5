"""Figures as pictures: a browser, rsvg-convert and cairosvg draw a figure's SVG file alike."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from png import Picture, difference
from synthetic_experiment import ranker, write_experiment

PROGRAM = os.environ["OLRANK_PROGRAM"]
BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
# The files of a family: fontconfig, which all these programs use, comes with one of them on Debian.
FONTS = (("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"), ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"))
DOCUMENTS = pathlib.Path(__file__).parents[2] / "docs"
FIGURES = ("perfect-offline-ndcg-difference", "perfect-offline-ndcg", "perfect-quality-against-time", "perfect-width-ratio")
# Of 255, over squares of a figure. Programs place letters and edges differently by parts of a pixel; a line of another colour
# differs by 58.
MEAN, LARGEST = 4.0, 36.0


def skip(reason):
    print(f"report/figure_rendering ... skipped '{reason}'")
    sys.exit(77)


def cairosvg():
    """Its command line, or nothing if it is not installed."""
    if command := shutil.which("cairosvg"):
        return [command]
    python = [next((path for path in ("/usr/bin/python3",) if os.access(path, os.X_OK)), sys.executable), "-m", "cairosvg"]
    found = subprocess.run([*python, "--version"], capture_output=True)
    return python if found.returncode == 0 else None


def size_of(drawing):
    return tuple(int(float(value)) for value in re.search(r'width="(\S+)" height="(\S+)"', drawing.read_text()).groups())


def bring_fonts(folder):
    """Leaves the programs one family to draw with: of several, each program chooses another."""
    installed = {file.name: file for file in pathlib.Path("/usr/share/fonts").rglob("*.ttf")}
    family = next((names for names in FONTS if installed.keys() >= set(names)), None)
    if family is None:
        skip("neither DejaVu Sans nor Liberation Sans is installed: package fonts-dejavu-core")
    (folder / "fonts").mkdir()
    for name in family:
        (folder / "fonts" / name).symlink_to(installed[name])
    (folder / "fonts.conf").write_text(
        f"<fontconfig><dir>{folder}/fonts</dir><cachedir>{folder}/font-cache</cachedir>"
        "<match target='font'><edit name='hinting' mode='assign'><bool>false</bool></edit></match></fontconfig>\n")
    os.environ["FONTCONFIG_FILE"] = str(folder / "fonts.conf")


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=900)


def browser_pictures(drawings, folder):
    """One page below the other in one screenshot, since starting a browser takes seconds."""
    sizes = [size_of(drawing) for drawing in drawings]
    width, height = max(size[0] for size in sizes), sum(size[1] for size in sizes)
    page = folder / "page.html"
    page.write_text("<!DOCTYPE html><body style='margin:0'>" + "".join(
        f"<img src='{drawing.as_uri()}' style='display:block'>" for drawing in drawings))
    shot = folder / "shot.png"
    run(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
        f"--user-data-dir={folder}/profile", f"--window-size={max(600, width)},{height + 200}", f"--screenshot={shot}",
        page.as_uri())
    whole, top, pictures = Picture(shot.read_bytes()), 0, []
    for across, down in sizes:
        pictures.append(whole.part(top, across, down))
        top += down
    return pictures


def rsvg_picture(drawing, folder):
    run("rsvg-convert", drawing, "-o", folder / "rsvg.png")
    return Picture((folder / "rsvg.png").read_bytes())


def cairo_picture(drawing, folder):
    run(*cairosvg(), drawing, "-o", folder / "cairo.png")
    return Picture((folder / "cairo.png").read_bytes())


def faults(drawing):
    """The file with one fault each: what programs without CSS variables drew, and one wrong colour."""
    text = drawing.read_text()
    yield "black", re.sub(r' fill="#[0-9a-f]+"', "", text)
    yield "opaque bands", re.sub(r' fill-opacity="[0-9.]+"', "", text)
    yield "a wrong colour", text.replace("#c84e00", "#0072b2").replace("#ff9554", "#0072b2")


def main():
    if BROWSER is None:
        skip("Chromium is not installed")
    if shutil.which("rsvg-convert") is None:
        skip("rsvg-convert is not installed: package librsvg2-bin")
    ways = {"rsvg-convert": rsvg_picture}
    if cairosvg():
        ways["cairosvg"] = cairo_picture
    else:
        print("report/figure_rendering with cairosvg ... skipped 'cairosvg is not installed: package python3-cairosvg'")
    complaints = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        bring_fonts(folder)
        experiment = write_experiment(folder / "e", [ranker(name) for name in ("full", "diagonal", "ensemble", "pdgd")],
                                      seeds=range(1, 6), extras=True)
        run(PROGRAM, "report", experiment, "--quiet", "--figures", folder / "f")
        drawings = [folder / "f" / f"{name}{theme}.svg" for name in FIGURES for theme in ("", "-dark")]
        drawings += [DOCUMENTS / "evidence/quickstart.svg", DOCUMENTS / "evidence/quickstart-dark.svg"]
        pictures = dict(zip(drawings, browser_pictures(drawings, folder)))
        for drawing, seen in pictures.items():
            for way, picture in ways.items():
                mean, largest = difference(seen, picture(drawing, folder))
                print(f"{drawing.stem}, {way}: differs from the browser's by {mean:.2f}, at most {largest:.0f} of 255")
                if mean > MEAN or largest > LARGEST:
                    complaints.append(f"{drawing.stem}: {way} draws another picture than the browser")
        first = drawings[0]
        broken = folder / "broken.svg"
        for fault, text in faults(first):
            broken.write_text(text)
            mean, largest = difference(pictures[first], rsvg_picture(broken, folder))
            print(f"with a fault ({fault}): {mean:.2f}, at most {largest:.0f}")
            if mean <= MEAN and largest <= LARGEST:
                complaints.append(f"the comparison missed a fault: {fault}")
        if difference(pictures[drawings[0]], pictures[drawings[1]])[0] < 100:
            complaints.append("light and dark do not differ")
    print("\n".join(complaints) or "every program draws the same pictures")
    sys.exit(1 if complaints else 0)


main()
