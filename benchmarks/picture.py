"""Draws the comparison as one SVG file, by hand: a panel a workload, a bar an entrant."""

from __future__ import annotations

from html import escape

from benchmarks.roster import ENTRANTS_BY_NAME, Kind
from benchmarks.run import Results
from benchmarks.workloads import WORKLOADS

__all__ = ["draw"]

SHOWN = (
    "becket",
    "becket-blocking",
    "floor",
    "node",
    "python-lsp-jsonrpc",
    "vscode-jsonrpc",
    "acp",
    "pygls",
    "mcp",
)
COLUMNS = 2
PANEL_WIDTH, NAME_WIDTH, NUMBER_WIDTH = 440, 180, 70
ROW, TITLE, GAP, MARGIN = 18, 44, 24, 20

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 13px; }
  .note { fill: #57606a; font-size: 11px; }
  .becket { fill: #0969da; } .floor { fill: #8c959f; } .peer { fill: #d0d7de; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note { fill: #8d96a0; }
    .becket { fill: #4493f8; } .floor { fill: #6e7681; } .peer { fill: #3d444d; }
  }
"""
CLASSES = {Kind.BECKET: "becket", Kind.FLOOR: "floor", Kind.PEER: "peer"}


def draw(results: Results) -> str:
    """Returns the picture of all workloads that were measured."""
    panels = [panel for name in results.workloads() if (panel := bars_of(results, name))]
    width = MARGIN * 2 + PANEL_WIDTH * COLUMNS + GAP * (COLUMNS - 1)
    top, parts = MARGIN, []
    for first in range(0, len(panels), COLUMNS):
        row = panels[first : first + COLUMNS]
        for column, (name, bars) in enumerate(row):
            parts.append(draw_panel(name, bars, MARGIN + column * (PANEL_WIDTH + GAP), top))
        top += TITLE + ROW * max(len(bars) for _, bars in row) + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}"'
        f' role="img" aria-label="becket beside other JSON-RPC peers">\n<style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def bars_of(results: Results, workload: str) -> tuple[str, list[tuple[str, float]]] | None:
    figure = WORKLOADS[workload].figure
    found = [(name, results.figure(name, workload, figure)) for name in SHOWN]
    bars = [(name, measured.value) for name, measured in found if measured is not None]
    bars.sort(key=lambda bar: bar[1], reverse=not WORKLOADS[workload].is_time)
    return (workload, bars) if bars else None


def draw_panel(name: str, bars: list[tuple[str, float]], x: float, y: float) -> str:
    workload = WORKLOADS[name]
    longest = max(value for _, value in bars)
    room = PANEL_WIDTH - NAME_WIDTH - NUMBER_WIDTH
    better = "less is better" if workload.is_time else "more is better"
    lines = [
        f'<g transform="translate({x:g} {y:g})">',
        f'<text class="title" y="12">{escape(workload.title)}</text>',
        f'<text class="note" y="28">{escape(workload.unit)}, {better}</text>',
    ]
    for number, (entrant, value) in enumerate(bars):
        top = TITLE + number * ROW
        length = max(room * value / longest, 1)
        described = ENTRANTS_BY_NAME[entrant]
        lines += [
            f'<text x="{NAME_WIDTH - 8}" y="{top + 11}" text-anchor="end">{escape(described.title)}</text>',
            f'<rect class="{CLASSES[described.kind]}" x="{NAME_WIDTH}" y="{top}" width="{length:.1f}" height="13"'
            ' rx="2"/>',
            f'<text class="note" x="{NAME_WIDTH + length + 6:.1f}" y="{top + 11}">{round_number(value)}</text>',
        ]
    return "\n".join([*lines, "</g>"])


def round_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"
