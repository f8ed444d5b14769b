"""One molecule as a kernel of several terms sees it."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass

import numpy as np

from mislabel.kernels.graphs.graph import Graph
from mislabel.kernels.graphs.molecular.extended_huckel import Electrons


@dataclass(frozen=True)
class MoleculeViews:
    """The graph of the first walk, that of the far walk, and the electrons; None for what the kernel does not look at."""

    near: Graph
    far: Graph | None = None
    electrons: Electrons | None = None

    def fingerprint(self) -> bytes:
        """A hash of everything that a kernel could see."""
        digest = hashlib.sha256(self.near.fingerprint())
        if self.far is not None:
            digest.update(self.far.fingerprint())
        if self.electrons is not None:
            digest.update(np.array(astuple(self.electrons)).tobytes())
        return digest.digest()
