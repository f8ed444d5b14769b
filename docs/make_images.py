"""Draw the picture of the README from the shipped example: python docs/make_images.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mislabel import audit
from mislabel.data import load_example_table

WIDTH, HEIGHT, MARGIN = 760, 420, 56
INK, MUTED, GRID = "#1f2933", "#52606d", "#d9e2ec"
CLEAN, FOUND, MISSED = "#8fa3b8", "#c2410c", "#6d28d9"


def main() -> None:
    example = load_example_table()
    table = audit(example.frame, example.label, 0.05, id=example.id)
    planted = table["row"].isin(set(example.frame.loc[example.planted, example.id])).to_numpy()
    expected, label = table["expected"].to_numpy(), table["label"].to_numpy()
    suspect = table["suspect"].to_numpy()
    high = 12.0
    inside = label <= high
    low = -0.6

    def x(value):
        return MARGIN + (value - 1.5) / (9.0 - 1.5) * (WIDTH - 2 * MARGIN)

    def y(value):
        return HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img">',
        "<title>Label against what all other labels expect</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for tick in range(0, 13, 2):
        parts.append(
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{GRID}"/>'
        )
        parts.append(f'<text x="{MARGIN - 8}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="{MUTED}">{tick}</text>')
    for tick in range(2, 10):
        parts.append(
            f'<text x="{x(tick):.1f}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle" fill="{MUTED}">{tick}</text>'
        )
    parts.append(
        f'<line x1="{x(1.5):.1f}" y1="{y(1.5):.1f}" x2="{x(9):.1f}" y2="{y(9):.1f}" stroke="{MUTED}" stroke-dasharray="4 4"/>'
    )
    order = np.argsort(suspect, kind="stable")
    for i in order:
        if not inside[i]:
            continue
        color, radius = (FOUND, 4.5) if suspect[i] else (MISSED, 4.5) if planted[i] else (CLEAN, 2.2)
        parts.append(
            f'<circle cx="{x(expected[i]):.1f}" cy="{y(label[i]):.1f}" r="{radius}" fill="{color}" fill-opacity="0.85"/>'
        )
    above = int(np.sum(~inside))
    parts += [
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle" fill="{INK}">expected power from all other tests (kW)</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" fill="{INK}" transform="rotate(-90 16 {HEIGHT / 2})">label (kW)</text>',
        f'<text x="{MARGIN}" y="24" fill="{INK}" font-size="15">{len(table)} heat-pump tests, {planted.sum()} planted errors: '
        f"{int(np.sum(suspect & planted))} found at a false discovery rate of 5 %</text>",
        f'<text x="{MARGIN}" y="43" fill="{MUTED}">orange: called suspect ({above} decimal slips lie far above the picture); '
        f"purple: planted but missed; grey: trusted</text>",
        "</svg>",
    ]
    target = Path(__file__).parent / "images" / "demo.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
