"""docs/CONFIGURATION.md matches the output of `olrank info --settings`."""

import os
import pathlib
import subprocess
import sys

page = pathlib.Path("docs/CONFIGURATION.md")
said = subprocess.run([os.environ["OLRANK_PROGRAM"], "info", "--settings"], capture_output=True, text=True, check=True)
if page.read_text() != said.stdout:
    sys.exit(f"{page} is out of date; rewrite it: build/bin/olrank info --settings > {page}")
print(f"{page} is what the program says")
