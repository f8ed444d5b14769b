"""Every exception and warning that mislabel raises, in one place.

All errors derive from :class:`MislabelError` and, where Python or scikit-learn users expect it, from the
matching built-in type, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Iterable, Sequence


class MislabelError(Exception):
    """Base class of all errors raised by mislabel."""


class InvalidLabelsError(MislabelError, ValueError):
    """The labels (or their known errors) cannot be used as they are."""


class InvalidFeaturesError(MislabelError, ValueError):
    """The features cannot be used as they are."""


class InvalidParameterError(MislabelError, ValueError):
    """An option has a value it cannot take."""


class KernelMatrixError(MislabelError, ValueError):
    """A kernel matrix is not a valid covariance: asymmetric, not finite or not positive semi-definite."""


class MemoryBudgetError(MislabelError, MemoryError):
    """The work would need more memory than this machine has free."""


class MissingDependencyError(MislabelError, ImportError):
    """An optional package is needed for what was asked."""


class InvalidGraphError(MislabelError, ValueError):
    """A graph or molecule that cannot be compared with others."""


class NotConvergedError(MislabelError, RuntimeError):
    """An iteration that had to converge did not."""


class SingularPairError(NotConvergedError, KernelMatrixError):
    """Two graphs without a finite similarity under a kernel; to tuning, a point that is not feasible."""


class GramFileError(MislabelError, ValueError):
    """A file of similarities that cannot be continued."""


class MoleculeFileError(MislabelError, ValueError):
    """A file of molecules that cannot be read; names file, molecule and line."""


class TableFileError(MislabelError, ValueError):
    """A table that cannot be read or written; names the file and the reason."""


class DecisionsError(MislabelError, ValueError):
    """Decisions that cannot be applied to a file."""


class StaleDecisionsError(DecisionsError):
    """Decisions that would replace newer ones."""


class ResultsError(MislabelError, ValueError):
    """A folder of results that are not those of this run, or cannot be read."""


class GateError(MislabelError, ValueError):
    """A folder by which no new rows can be judged; names it and the reason."""


class DownloadError(MislabelError, OSError):
    """A data set could not be fetched."""


class DiskSpaceError(MislabelError, OSError):
    """There is not enough room on the disk for what is to be written."""


class FileInUseError(MislabelError, OSError):
    """Another process is writing the same file."""


class PickleVersionError(MislabelError, pickle.UnpicklingError):
    """A pickled model was written by another version of mislabel; names both."""


class MislabelWarning(UserWarning):
    """Base class of all warnings raised by mislabel."""


class JitterWarning(MislabelWarning):
    """A multiple of the identity was added to make a kernel matrix numerically positive definite."""


class NotConvergedWarning(MislabelWarning):
    """A solver stopped before it reached the tolerance that was asked for."""


class GramFileWarning(MislabelWarning):
    """Parts of a file of similarities were damaged, and were computed again."""


class BaseNoiseWarning(MislabelWarning):
    """The noise shared by all labels could not be told apart from the noise of the wrong ones."""


class UnitsWarning(MislabelWarning):
    """Numbers that are unlikely in the unit they should be in."""


def describe_rows(rows: Iterable[object], most: int = 5) -> str:
    """Name a few rows for an error message: ``rows 3, 17, 20, ...``."""
    rows = list(rows)
    names = ", ".join(str(row) for row in rows[:most])
    return f"row{'s' if len(rows) > 1 else ''} {names}{', ...' if len(rows) > most else ''}"


def unknown_name(what: str, name: object, choices: Sequence[str]) -> InvalidParameterError:
    """Build the error for a name that is not in a registry, with the closest match as advice."""
    close = difflib.get_close_matches(str(name), choices, n=1)
    advice = f" Did you mean {close[0]!r}?" if close else ""
    return InvalidParameterError(f"unknown {what} {name!r}; choose one of {', '.join(map(repr, choices))}.{advice}")
