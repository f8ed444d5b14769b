"""A Gaussian process whose log noise is a second Gaussian process (GPflow's multi-latent model), where GPflow is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mislabel.reproduce.figure2 import Found, Sample

STEPS = 300


def is_installed() -> bool:
    """Whether GPflow can be imported."""
    return find_spec("gpflow") is not None


def heteroscedastic(sample: Sample, grid: np.ndarray) -> Found:
    """Fitted by natural gradients and Adam, as GPflow's own tutorial on heteroskedastic likelihoods does.

    Its suspicion of a label is the better guess of two: residual over the noise that the model sees at that place.
    """
    import gpflow
    import tensorflow as tf

    from mislabel.reproduce.figure2 import Found

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

    @tf.function
    def step() -> None:
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape() as tape:
            value = loss()
        adam.apply_gradients(
            zip(tape.gradient(value, model.trainable_variables), model.trainable_variables, strict=True)
        )

    for _ in range(STEPS):
        step()
    mean, _ = model.predict_f(points)
    _, variance = model.predict_y(points)
    residual = labels - mean.numpy()[:, :1]
    curve, _ = model.predict_f(grid[:, None])
    return Found(curve.numpy()[:, 0] + sample.labels.mean(), np.abs(residual[:, 0]) / np.sqrt(variance.numpy()[:, 0]))
