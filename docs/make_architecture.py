"""Draw docs/images/architecture.svg: rooms from top to bottom, and what passes through them.

python docs/make_architecture.py
"""

from pathlib import Path

#: From top to bottom: rooms side by side, each with what it does.
ROWS = [
    [("cli", "parse, call, print"), ("reproduce", "the paper's figures and table")],
    [("auditing", "from a frame or a file to a result")],
    [("report", "words, dict, page"), ("plotting", "pictures"), ("distributed", "rows on a cluster")],
    [("estimators", "prepared data → mean → process → evidence")],
    [("data", "formats, columns"), ("noise", "the paper"), ("decisions", "evidence → verdict")],
    [("kernels", "how similar rows or molecules are; graphs")],
    [("linalg", "matrices K + diag(noise)")],
    [("_common", "files, progress, robust spread"), ("errors", "every exception")],
]
WIDTH, HEIGHT, GAP, TOP = 900, 58, 14, 20


def box(x, y, width, name, text):
    middle = x + width / 2
    return (
        f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{HEIGHT}" rx="8" fill="#eef3f8" stroke="#4a6785"/>'
        f'<text x="{middle:.0f}" y="{y + 24}" font-weight="bold" font-size="16">{name}</text>'
        f'<text x="{middle:.0f}" y="{y + 45}" font-size="13">{text}</text>'
    )


def drawing():
    left, inner = 170, WIDTH - 2 * 170
    parts = []
    for number, rooms in enumerate(ROWS):
        y = TOP + number * (HEIGHT + GAP)
        width = (inner - GAP * (len(rooms) - 1)) / len(rooms)
        parts += [box(left + k * (width + GAP), y, width, name, text) for k, (name, text) in enumerate(rooms)]
    height = TOP + len(ROWS) * (HEIGHT + GAP)
    down, up = TOP + HEIGHT + GAP, TOP + 6 * (HEIGHT + GAP)
    parts += [
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="#b5541c"/></marker></defs>',
        f'<path d="M140 {down} V{up}" stroke="#b5541c" stroke-width="3" marker-end="url(#tip)" fill="none"/>',
        f'<path d="M760 {up} V{down}" stroke="#b5541c" stroke-width="3" marker-end="url(#tip)" fill="none"/>',
    ]
    for k, line in enumerate(("a row,", "a molecule", "", "read", "encoded", "compared", "fitted")):
        parts.append(f'<text x="72" y="{down + 40 + 42 * k}" font-size="14">{line}</text>')
    for k, line in enumerate(("result, page,", "cleaned file", "", "findings", "suspects", "calibrated", "evidence")):
        parts.append(f'<text x="828" y="{down + 40 + 42 * k}" font-size="14">{line}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" text-anchor="middle">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    (Path(__file__).parent / "images" / "architecture.svg").write_text(drawing(), encoding="utf-8")
