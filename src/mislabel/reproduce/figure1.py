"""Figure 1: is this one label wrong? Twelve clean labels judge a thirteenth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from mislabel import single_label_test
from mislabel.reproduce.results import claim, draw, write_result

KERNEL = RBF(0.12)
#: Error added to the label in question, in the middle and right panels.
ERROR = 0.9
QUESTIONED = 6


def example(error: float) -> tuple[np.ndarray, np.ndarray]:
    """Thirteen points of a smooth curve (a little off an even grid, seed 1), the seventh label off by ``error``."""
    rng = np.random.default_rng(1)
    points = np.linspace(0.02, 0.98, 13) + rng.uniform(-0.02, 0.02, 13)
    # A wide gap around the label in question, so that its neighbours leave something to doubt.
    points = np.where(np.arange(13) < QUESTIONED, points - 0.05, points)
    points = np.where(np.arange(13) > QUESTIONED, points + 0.05, points)
    labels = np.sin(2.0 * np.pi * points) + 0.5 * points
    labels[QUESTIONED] += error
    return points, labels


def judged(error: float) -> Any:
    """What the other twelve say: a ``SingleLabelTest``."""
    points, labels = example(error)
    return single_label_test(KERNEL(points[:, None]), labels, QUESTIONED)


def run_figure1(out: Path) -> dict[str, Any]:
    """Draw the three panels, and check what each is there to show."""
    clean, wrong = judged(0.0), judged(ERROR)
    claims = [
        claim("a clean label lies inside the leave-one-out band", abs(clean.error) < clean.expected_std),
        claim("a wrong label lies outside of it", abs(wrong.error) > wrong.expected_std),
        claim("a variance of its own brings it back", abs(wrong.error) <= wrong.widened_std * (1.0 + 1e-9)),
        claim("that variance makes the labels likelier", wrong.gain > 0.0),
        claim("a clean label needs none", clean.needed_variance == 0.0),
    ]
    draw(out / "fig1.svg", _panels, clean, wrong, columns=3)
    figures = {"clean": vars(clean), "wrong": vars(wrong), "claims": claims}
    write_result(out / "fig1.json", figures)
    return figures


def _panels(axes: Any, clean: Any, wrong: Any) -> None:
    stories = [
        ("clean label: inside", 0.0, clean.expected_std),
        ("wrong label: outside", ERROR, wrong.expected_std),
        ("its variance widens the band", ERROR, wrong.widened_std),
    ]
    for ax, (title, error, widened) in zip(axes, stories, strict=True):
        points, labels = example(error)
        others = np.delete(np.arange(13), QUESTIONED)
        grid = np.linspace(points.min(), points.max(), 301)
        matrix = KERNEL(points[others, None]) + 1e-8 * np.eye(12)
        cross = KERNEL(grid[:, None], points[others, None])
        curve = cross @ np.linalg.solve(matrix, labels[others])
        band = np.sqrt(np.maximum(1.0 - np.einsum("ij,ji->i", cross, np.linalg.solve(matrix, cross.T)), 0.0))
        ax.fill_between(grid, curve - band, curve + band, color="#cfe0f0", lw=0, label="leave-one-out band")
        ax.plot(grid, curve, color="#52606d", lw=1)
        expected = (clean if error == 0.0 else wrong).expected
        ax.errorbar(points[QUESTIONED], expected, yerr=widened, color="#0b62a8", capsize=5, lw=1.5)
        ax.plot(points[others], labels[others], "o", color="#0b62a8", ms=4)
        ax.plot(points[QUESTIONED], labels[QUESTIONED], "D", color="#b93a0b", ms=6)
        ax.set_title(title)
