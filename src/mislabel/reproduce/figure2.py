"""Figure 2: three curves of one variable, some of whose labels are wrong.

The first example is the paper's own. The second is Goldberg, Williams and Bishop's (1998). The definition of the third (Le,
Smola and Canu, 2005) could not be found; Yuan and Wahba's (2004) stands in for it. The models are the one of this package,
uniform noise, and (where GPflow is installed, else from the committed figures) a Gaussian process whose noise is a second
Gaussian process.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mislabel import LabelNoiseRegressor
from mislabel.errors import MislabelWarning
from mislabel.evaluation import detection_report
from mislabel.reproduce.results import claim, draw, write_result

SEEDS = 50
#: Settings chosen on seeds 1000 to 1059, not on those reported. Random starts of the hyperparameters are the paper's
#: "multiple runs from randomized initial guesses"; the penalty is its own, with p = 1.
N_RESTARTS = 12
PENALTY = 1.0
#: Results of GPflow's model, used where it is not installed.
GPFLOW_FIGURES = "gpflow_figure2.json"
GPFLOW_STEPS = 300

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Example:
    """A curve on an interval, ``size`` labels, of which ``wrong`` get noise of the given spread."""

    name: str
    low: float
    high: float
    size: int
    wrong: int
    curve: Curve
    wrong_std: Curve
    clean_std: float = 0.0

    def draw(self, seed: int) -> Sample:
        """Points drawn from a fine even grid, labels, and which of them are wrong."""
        rng = np.random.default_rng(seed)
        grid = np.linspace(self.low, self.high, 10 * self.size)
        points = np.sort(rng.choice(grid, self.size, replace=False))
        clean = self.curve(points)
        labels = clean + rng.normal(0.0, 1.0, self.size) * self.clean_std
        mask = np.zeros(self.size, dtype=bool)
        mask[rng.choice(self.size, self.wrong, replace=False)] = True
        labels[mask] += rng.normal(0.0, 1.0, self.wrong) * self.wrong_std(points[mask])
        return Sample(points, labels, mask)


@dataclass(frozen=True, eq=False)
class Sample:
    """One draw of an example."""

    points: np.ndarray
    labels: np.ndarray
    mask: np.ndarray


EXAMPLES = (
    Example(
        "1: cos(3 pi x) + sin(pi x) + 2 x^2",
        -1.0,
        1.0,
        24,
        10,
        lambda x: np.cos(3 * np.pi * x) + np.sin(np.pi * x) + 2 * x**2,
        lambda x: np.full_like(x, 0.75),
        0.05,
    ),
    Example("2: Goldberg et al.", 0.0, 1.0, 30, 20, lambda x: 2 * np.sin(2 * np.pi * x), lambda x: 0.5 + x),
    Example(
        "3: Yuan and Wahba",
        0.0,
        1.0,
        50,
        33,
        lambda x: 2 * (np.exp(-30 * (x - 0.25) ** 2) + np.sin(np.pi * x**2)) - 2,
        lambda x: np.exp(np.sin(2 * np.pi * x)),
    ),
)


@dataclass(frozen=True, eq=False)
class Found:
    """What a model says: the curve on a grid, and how suspicious each label is."""

    curve: np.ndarray
    score: np.ndarray


def _fitted(sample: Sample, **options: Any) -> LabelNoiseRegressor:
    kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(0.2, (0.03, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MislabelWarning)
        model = LabelNoiseRegressor(kernel=kernel, n_restarts=N_RESTARTS, **options)
        return model.fit(sample.points[:, None], sample.labels)


def proposed(sample: Sample, grid: np.ndarray) -> Found:
    """The paper's model: a noise variance for every label and no base noise, penalised a little."""
    model = _fitted(sample, base_noise=0.0, penalty=PENALTY)
    return Found(model.predict(grid[:, None]), np.abs(model.loo_error_))


def uniform(sample: Sample, grid: np.ndarray) -> Found:
    """One noise variance for all."""
    model = _fitted(sample, noise="uniform")
    return Found(model.predict(grid[:, None]), np.abs(model.z_))


def heteroscedastic(sample: Sample, grid: np.ndarray) -> Found:
    """GPflow's multi-latent model, whose log noise is a second Gaussian process.

    Fitted by natural gradients and Adam, as GPflow's own tutorial on heteroskedastic likelihoods does.

    Its suspicion of a label is the better guess of two: residual over the noise that the model sees at that place.
    """
    import gpflow
    import tensorflow as tf

    points, labels = sample.points[:, None], sample.labels[:, None] - sample.labels.mean()
    likelihood = gpflow.likelihoods.HeteroskedasticTFPConditional()
    kernel = gpflow.kernels.SeparateIndependent(
        [gpflow.kernels.SquaredExponential(lengthscales=0.2), gpflow.kernels.SquaredExponential(lengthscales=0.5)]
    )
    places = gpflow.inducing_variables.SeparateIndependentInducingVariables(
        [gpflow.inducing_variables.InducingPoints(points.copy()) for _ in range(2)]
    )
    model: Any = gpflow.models.SVGP(kernel, likelihood, inducing_variable=places, num_latent_gps=2)
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    gpflow.set_trainable(model.inducing_variable, False)
    loss = tf.function(model.training_loss_closure((points, labels), compile=False))
    natural = gpflow.optimizers.NaturalGradient(gamma=0.1)
    adam = tf.keras.optimizers.Adam(0.03)

    @tf.function  # type: ignore[untyped-decorator]
    def step() -> None:
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape() as tape:
            value = loss()
        adam.apply_gradients(
            zip(tape.gradient(value, model.trainable_variables), model.trainable_variables, strict=True)
        )

    for _ in range(GPFLOW_STEPS):
        step()
    mean, _ = model.predict_f(points)
    _, variance = model.predict_y(points)
    residual = labels - mean.numpy()[:, :1]
    curve, _ = model.predict_f(grid[:, None])
    return Found(curve.numpy()[:, 0] + sample.labels.mean(), np.abs(residual[:, 0]) / np.sqrt(variance.numpy()[:, 0]))


def run_figure2(out: Path, seeds: int = SEEDS) -> dict[str, Any]:
    """RMSE of the curve and AUROC of the wrong labels, averaged over seeds, and one drawing of each example.

    Fewer seeds than the default are for trying it out: nothing is claimed from them.
    """
    models = {"proposed": proposed, "uniform": uniform}
    means: dict[str, Any] = {}
    for example in EXAMPLES:
        means[example.name] = {name: _average(example, model, range(seeds)) for name, model in models.items()}
    other = heteroscedastic_figures(seeds)
    if other is not None:
        for example in EXAMPLES:
            means[example.name]["heteroscedastic (GPflow)"] = other[example.name]
    claims = []
    for name, rows in means.items() if seeds >= SEEDS else ():
        ours, others = rows["proposed"], [row for key, row in rows.items() if key != "proposed"]
        claims.append(claim(f"{name}: lowest RMSE", all(ours["rmse"] < row["rmse"] for row in others)))
        claims.append(claim(f"{name}: highest AUC", all(ours["auroc"] > row["auroc"] for row in others)))
    draw(out / "fig2.svg", _panels, models, columns=3)
    figures = {"seeds": seeds, "means": means, "claims": claims}
    write_result(out / "fig2.json", figures)
    return figures


def score(example: Example, sample: Sample, found: Found, grid: np.ndarray) -> tuple[float, float]:
    """RMSE of the curve, AUROC of the wrong labels."""
    rmse = float(np.sqrt(np.mean((found.curve - example.curve(grid)) ** 2)))
    return rmse, detection_report(sample.mask, found.score).auroc


def _average(example: Example, model: Callable[[Sample, np.ndarray], Found], seeds: Sequence[int]) -> dict[str, float]:
    grid = np.linspace(example.low, example.high, 201)
    rows = []
    for seed in seeds:
        sample = example.draw(seed)
        rows.append(score(example, sample, model(sample, grid), grid))
    return averages(rows)


def averages(rows: list[tuple[float, float]]) -> dict[str, float]:
    """Means and their standard errors."""
    table = np.array(rows)
    mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(rows))
    return {
        "rmse": round(float(mean[0]), 4),
        "rmse_error": round(float(error[0]), 4),
        "auroc": round(float(mean[1]), 4),
        "auroc_error": round(float(error[1]), 4),
    }


def heteroscedastic_figures(seeds: int) -> dict[str, Any] | None:
    """Figures of GPflow's model, made now if it is installed, else those made once for 50 seeds."""
    if find_spec("gpflow") is not None:
        return {example.name: _average(example, heteroscedastic, range(seeds)) for example in EXAMPLES}
    stored = files("mislabel.reproduce") / GPFLOW_FIGURES
    if seeds != SEEDS or not stored.is_file():
        return None
    found: dict[str, Any] = json.loads(stored.read_text())["means"]
    return found


def _panels(axes: Any, models: dict[str, Callable[[Sample, np.ndarray], Found]]) -> None:
    for ax, example in zip(axes, EXAMPLES, strict=True):
        grid = np.linspace(example.low, example.high, 201)
        sample = example.draw(0)
        ax.plot(grid, example.curve(grid), "--", color="#52606d", lw=1, label="truth")
        for (name, model), color in zip(models.items(), ("#0b62a8", "#8a9a5b"), strict=True):
            ax.plot(grid, model(sample, grid).curve, color=color, lw=1.4, label=name)
        ax.plot(sample.points[~sample.mask], sample.labels[~sample.mask], "o", color="#1f2933", ms=3)
        ax.plot(sample.points[sample.mask], sample.labels[sample.mask], "x", color="#b93a0b", ms=5)
        ax.set_title(example.name)
        ax.legend(fontsize=8)
