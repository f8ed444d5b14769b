"""Which kernel compares molecules, and what their label is like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mislabel import kernels
from mislabel.auditing.request import Request
from mislabel.data.molecules import smiles_columns
from mislabel.errors import InvalidParameterError
from mislabel.kernels.adapters import compares_objects
from mislabel.kernels.contract import GraphKernel
from mislabel.kernels.graphs.molecules import is_periodic

#: Properties that go with the number of atoms at least this closely are taken to be extensive.
EXTENSIVE_FROM = 0.5
#: Atomic numbers in molecules for which the more accurate kernels have their values: H, C, N, O, F, S, Cl.
ORGANIC = frozenset({1, 6, 7, 8, 9, 16, 17})
#: Molecules with more atoms are compared without regard to their electrons: levels take a time that grows with the cube.
ELECTRONS_UP_TO = 500


def kernel_of_objects(
    objects: Sequence[Any], labels: NDArray[np.float64], kernel: Any, source: str
) -> tuple[Any, list[str]]:
    """The kernel for molecules, graphs or a kernel matrix, and notes about how it was chosen."""
    if not (kernel is None or isinstance(kernel, str)) or kernel == "precomputed":
        return kernel, []
    if kernel == "bonds" and not _has_atoms(objects):
        return kernels.bond_kernel(), []
    if kernel in ("table", "bonds"):
        raise InvalidParameterError(
            f"{source} holds three-dimensional molecules: use the kernel auto, extensive or intensive."
        )
    if not _has_atoms(objects):
        raise InvalidParameterError(
            f"{source} holds objects that are no molecules with atoms: pass the kernel that compares them, for example "
            "kernel=MarginalizedGraphKernel(...)."
        )
    if kernel in ("extensive", "intensive"):
        return kernel_for(objects, kernel), []
    likely, note = _extensive_or_not(objects, labels)
    return kernel_for(objects, likely), [note]


def _has_atoms(objects: Sequence[Any]) -> bool:
    return all(hasattr(item, "numbers") for item in objects)


def kernel_for(molecules: Sequence[Any], property: str) -> kernels.MolecularKernel:
    """The most accurate kernel that is known to suit all the molecules."""
    if not all(ORGANIC.issuperset(np.asarray(molecule.numbers).tolist()) for molecule in molecules):
        return kernels.MolecularKernel(property=property)
    if any(is_periodic(molecule) or len(molecule) > ELECTRONS_UP_TO for molecule in molecules):
        return kernels.MolecularKernel.with_far_walk(property)
    return kernels.MolecularKernel.accurate(property)


def _extensive_or_not(molecules: Sequence[Any], labels: NDArray[np.float64]) -> tuple[str, str]:
    sizes = pd.Series([float(len(molecule)) for molecule in molecules])
    close = abs(float(sizes.corr(pd.Series(labels), method="spearman"))) if sizes.nunique() > 1 else 0.0
    if close >= EXTENSIVE_FROM:
        return (
            "extensive",
            f"the label goes with the number of atoms (rank correlation {close:.2f}): taken to be extensive.",
        )
    return (
        "intensive",
        f"the label does not go with the number of atoms (rank correlation {close:.2f}): taken to be intensive.",
    )


def smiles_column(frame: pd.DataFrame, request: Request) -> str | None:
    """The column of SMILES that rows are compared by; None where they are compared by their features."""
    kernel = request.kernel
    if isinstance(kernel, str) and kernel in ("extensive", "intensive"):
        raise InvalidParameterError(
            f"the kernel {kernel} needs three-dimensional molecules (a file in xyz, extxyz or sdf, or a list)."
        )
    by_bonds = (isinstance(kernel, str) and kernel == "bonds") or isinstance(kernel, GraphKernel)
    if not by_bonds and not (kernel is None or (isinstance(kernel, str) and kernel == "auto")):
        return None
    named = [
        name for name in smiles_columns(request.candidates(frame)) if not pd.api.types.is_numeric_dtype(frame[name])
    ]
    if not named and by_bonds:
        what = "the kernel bonds" if not compares_objects(kernel) else "a kernel that compares graphs"
        raise InvalidParameterError(f"{what} needs a column of SMILES with 'smiles' in its name.")
    return named[0] if named else None
