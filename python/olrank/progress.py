"""How far an experiment is, in a terminal or a notebook."""

from __future__ import annotations

import html
import sys
import time
from typing import Any


class Progress:
    """Redraws one line, or one line of a notebook's output, at most five times a second."""

    _WIDTH = 24
    _INTERVAL = 0.2

    def __init__(self) -> None:
        self._share = 0.0
        self._left: float | None = None
        self._trials = (0, 0)
        self._latest = ""
        self._drawn = 0.0
        self._display: Any = _notebook_display()
        self._terminal = sys.stderr.isatty()

    def tell(self, event: dict[str, Any]) -> None:
        """Takes an event of docs/CONTRACTS.md."""
        name = event["event"]
        if name == "experiment_started":
            self._trials = (0, event["trials"])
        elif name == "progress":
            self._share, self._left = event["share"], event["seconds_left"]
            self._trials = (event["trials"]["finished"], event["trials"]["total"])
        elif name == "evaluation":
            trial = event["trial"]
            figure = next((f"{name} {value:.4f}" for name, value in event["offline"].items() if value is not None), "")
            self._latest = f"{trial['ranker']}, {trial['clicks']}, seed {trial['seed']}, round {event['round']}: {figure}"
        elif name in ("trial_finished", "trial_skipped"):
            self._trials = (min(self._trials[0] + 1, self._trials[1]), self._trials[1])
        else:
            return
        if time.monotonic() - self._drawn >= self._INTERVAL:
            self._draw()

    def end(self, done: bool) -> None:
        if done:
            self._share, self._left = 1.0, 0.0
        self._draw()
        if self._display is None and self._terminal:
            print(file=sys.stderr, flush=True)

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        full = round(self._WIDTH * self._share)
        bar = "█" * full + "░" * (self._WIDTH - full)
        left = "" if self._left is None or self._share >= 1.0 else f", {_duration(self._left)} left"
        text = f"{bar} {self._share:4.0%}, {self._trials[0]} of {self._trials[1]} trials{left}"
        if self._latest:
            text += f"; {self._latest}"
        if self._display is not None:
            self._display.update(_Html(f"<code>{html.escape(text)}</code>"))
        elif self._terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text


def _notebook_display() -> Any:
    """A place in the output of a notebook's cell that can be redrawn; None elsewhere."""
    shell = sys.modules.get("IPython")
    if shell is None or type(shell.get_ipython()).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found]

    return display(_Html(""), display_id=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole // 60 % 60:02}m"
    return f"{whole // 60}m{whole % 60:02}s" if whole >= 60 else f"{whole}s"
