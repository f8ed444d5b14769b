"""The paper's figures and its table, from the public face of the package."""

from __future__ import annotations

FIGURES = ("fig1", "fig2", "fig3")
TARGETS = (*FIGURES, "table1")
