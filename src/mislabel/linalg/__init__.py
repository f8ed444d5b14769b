"""Matrices of the form ``K + diag(noise)``: one contract, the exact dense implementation, one jitter ladder."""

from mislabel.linalg.contract import Covariance, LeaveOneOut, SignalCovariance
from mislabel.linalg.cost import CostMeter
from mislabel.linalg.dense import DenseCovariance, DenseSignal
from mislabel.linalg.jitter import stabilizing_jitter

__all__ = [
    "CostMeter",
    "Covariance",
    "DenseCovariance",
    "DenseSignal",
    "LeaveOneOut",
    "SignalCovariance",
    "stabilizing_jitter",
]
