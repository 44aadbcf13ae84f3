"""A chart of prices over time as one SVG file: step lines, a band for spot, gaps where nothing was seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import escape

from catalog.history import Step

_NAMESPACE = "http://www.w3.org/2000/svg"
_FONT = 'font-family="sans-serif" font-size="12"'
_WIDTH, _HEIGHT = 960, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 200, 50, 50
# Okabe and Ito's palette, told apart by colour-blind readers too: https://jfly.uni-koeln.de/color/
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
_BAND = "#009e73"


@dataclass(frozen=True, slots=True)
class Line:
    """One named series of steps; where two steps do not touch there is a gap."""

    name: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw: lines, and pairs of steps (lowest, highest) of the spot band over the same stretch of time."""

    title: str
    since: datetime
    until: datetime
    lines: Sequence[Line]
    band: Sequence[tuple[Step, Step]] = field(default_factory=tuple)


def svg(chart: Chart) -> str:
    """The chart as SVG text, readable on light and dark backgrounds."""
    top = _ceiling(chart)
    parts = [
        f'<svg xmlns="{_NAMESPACE}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" {_FONT}>',
        f"<title>{escape(chart.title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="26" font-size="16" fill="#111111">{escape(chart.title)}</text>',
        *_axes(chart, top),
        *(_band(chart, pair, top) for pair in chart.band),
        *(_line(chart, line, _COLOURS[i % len(_COLOURS)], top) for i, line in enumerate(chart.lines)),
        *_legend(chart),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _ceiling(chart: Chart) -> float:
    prices = [s.price_usd_gpu_hour for line in chart.lines for s in line.steps]
    prices += [high.price_usd_gpu_hour for _, high in chart.band]
    highest = max(prices, default=1.0) or 1.0
    step = 10.0 ** math.floor(math.log10(highest))
    return next(step * m for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * m >= highest * 1.02 or m == 10)


def _x(chart: Chart, at: datetime) -> float:
    whole = max((chart.until - chart.since).total_seconds(), 1.0)
    share = (at - chart.since).total_seconds() / whole
    return _LEFT + min(1.0, max(0.0, share)) * (_WIDTH - _LEFT - _RIGHT)


def _y(price: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - price / top * (_HEIGHT - _TOP - _BOTTOM)


def _axes(chart: Chart, top: float) -> list[str]:
    parts = []
    for i in range(6):
        price = top * i / 5
        y = _y(price, top)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444444">{price:.4g}</text>')
    days = max(1, round((chart.until - chart.since) / timedelta(days=1)))
    every = next((d for d in (1, 2, 7, 14, 30, 61, 122) if days / d <= 8), 183)
    day = (chart.since + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    while day <= chart.until:
        x, base = _x(chart, day), _HEIGHT - _BOTTOM
        parts.append(f'<line x1="{x:.1f}" y1="{base}" x2="{x:.1f}" y2="{base + 5}" stroke="#444444"/>')
        label = f"{day.astimezone(UTC):%Y-%m-%d}"
        parts.append(f'<text x="{x:.1f}" y="{base + 20}" text-anchor="middle" fill="#444444">{label}</text>')
        day += timedelta(days=every)
    parts.append(f'<text x="10" y="{_TOP - 8}" fill="#444444">USD per GPU-hour</text>')
    return parts


def _line(chart: Chart, line: Line, colour: str, top: float) -> str:
    path, last_end = [], None
    for step in line.steps:
        x1, x2, y = _x(chart, step.start), _x(chart, step.end), _y(step.price_usd_gpu_hour, top)
        joined = last_end is not None and step.start <= last_end
        path.append(f"V{y:.1f}" if joined else f"M{x1:.1f} {y:.1f}")
        path.append(f"H{max(x2, x1 + 1.5):.1f}")  # one sighting alone is a dot, not nothing
        last_end = step.end
    if not path:
        return ""
    name = escape(line.name, {'"': "&quot;"})
    return f'<path data-series="{name}" d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _band(chart: Chart, pair: tuple[Step, Step], top: float) -> str:
    low, high = pair
    x1, x2 = _x(chart, low.start), _x(chart, low.end)
    y1, y2 = _y(high.price_usd_gpu_hour, top), _y(low.price_usd_gpu_hour, top)
    return (
        f'<rect class="spot-band" x="{x1:.1f}" y="{y1:.1f}" width="{max(x2 - x1, 1.5):.1f}" '
        f'height="{max(y2 - y1, 1.5):.1f}" fill="{_BAND}" fill-opacity="0.25"/>'
    )


def _legend(chart: Chart) -> list[str]:
    entries = [(line.name, _COLOURS[i % len(_COLOURS)]) for i, line in enumerate(chart.lines)]
    if chart.band:
        entries.append(("spot, lowest to highest", _BAND))
    parts = []
    for i, (name, colour) in enumerate(entries[:20]):
        y = _TOP + 10 + 18 * i
        x = _WIDTH - _RIGHT + 15
        parts.append(f'<line x1="{x}" y1="{y}" x2="{x + 18}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 24}" y="{y + 4}" fill="#111111">{escape(name[:26])}</text>')
    return parts
