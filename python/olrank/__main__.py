"""The program `olrank`, which is in the package's library: `olrank …` or `python -m olrank …`."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from olrank import _core


def main() -> NoReturn:
    """Takes the process's arguments, and ends it as the program would."""
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)  # the program handles signals itself
    os._exit(_core.program(["olrank", *sys.argv[1:]]))  # at once, as taking LibTorch apart takes longer than short commands


if __name__ == "__main__":
    main()
