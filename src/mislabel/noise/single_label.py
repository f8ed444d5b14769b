"""Is this one label wrong? The paper's section 3.1 and figure 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from mislabel.errors import InvalidParameterError
from mislabel.linalg.contract import FloatArray
from mislabel.linalg.dense import DenseSignal
from mislabel.linalg.jitter import stabilizing_jitter
from mislabel.noise.objective import likelihood_gain


@dataclass(frozen=True)
class SingleLabelTest:
    """What all other labels, taken as clean, say about one label.

    expected, expected_std : their prediction of it and its standard deviation.
    error : label minus expected.
    z, p_value : standardised error and its two-sided normal p-value.
    needed_variance : by how much the label's own variance must grow for its error to fit: ``max(0, error^2 - std^2)``;
        zero for a label inside the band.
    widened_std : the band after that: the error's own size for a wrong label.
    gain : fall of -2 log likelihood that this variance buys.
    """

    expected: float
    expected_std: float
    error: float
    z: float
    p_value: float
    needed_variance: float
    widened_std: float
    gain: float


def single_label_test(
    kernel_matrix: FloatArray, labels: FloatArray, index: int, *, base_noise: float = 0.0
) -> SingleLabelTest:
    """Test one label against all the others, which are trusted.

    Parameters
    ----------
    kernel_matrix : (n, n) covariance of the signal.
    labels : n labels, centred where the prior mean is not zero.
    index : position of the label in question.
    base_noise : noise variance that every label has.
    """
    matrix = np.asarray(kernel_matrix, dtype=float)
    labels = np.asarray(labels, dtype=float)
    size = labels.size
    if matrix.shape != (size, size):
        raise InvalidParameterError(f"kernel_matrix has shape {matrix.shape}, expected {(size, size)}.")
    if not -size <= index < size:
        raise InvalidParameterError(f"index {index} is out of range for {size} labels.")
    signal = DenseSignal(np.asfortranarray(matrix))
    noise = np.full(size, float(base_noise))
    noise += stabilizing_jitter(signal, noise)
    left_out = signal.with_noise(noise).leave_one_out(labels)
    error, variance = float(left_out.error[index]), float(left_out.variance[index])
    z = error / np.sqrt(variance)
    needed = max(0.0, error**2 - variance)
    return SingleLabelTest(
        expected=float(labels[index]) - error,
        expected_std=float(np.sqrt(variance)),
        error=error,
        z=float(z),
        p_value=float(2.0 * norm.sf(abs(z))),
        needed_variance=needed,
        widened_std=float(np.sqrt(variance + needed)),
        gain=float(likelihood_gain(np.array([z**2]))[0]),
    )
