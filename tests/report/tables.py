"""Small tables with wrong labels, and their audits."""

import csv
import io
import json

import numpy as np

from mislabel.cli import main


def table_of(rng, ids, extra, delimiter=",", decimal=".", line_end="\n", quote_all=False):
    """A table of 60 rows with three wrong labels, as bytes."""
    x = np.round(rng.uniform(-2, 2, 60), 4)
    y = np.round(3000 * np.sin(x) + 9000 + 20 * rng.normal(size=60), 2)
    y[[7, 21, 40]] *= 10
    text = io.StringIO(newline="")
    style = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=style)
    writer.writerow(["id", "x", "text", "y"])
    for k in range(60):
        cells = [ids[k], f"{x[k]:.4f}".replace(".", decimal), extra[k], f"{y[k]:.2f}".replace(".", decimal)]
        writer.writerow(cells)
    return text.getvalue()


def audited(tmp_path, raw, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(raw)
    out = tmp_path / "audit"
    options = ["--label", "y", "--id", "id", "--mean", "none", "--drop", "text", "--quiet", "--out", str(out)]
    assert main(["audit", str(path), *options]) == 0
    return path, out / "report.html"


def content_of(path):
    """The data inside a page."""
    return json.loads(path.read_text(encoding="utf-8").split('id="content">')[1].split("</script>")[0])
