"""Fitted models as files: read back by the version of mislabel that wrote them, refused clearly by any other."""

from __future__ import annotations

from typing import Any, cast

from mislabel._common.version import __version__
from mislabel.errors import PickleVersionError

#: Number of the set of attributes that fitted models store; raise it when they change between two releases.
FORMAT = 2
_VERSION_KEY, _FORMAT_KEY = "_mislabel_version", "_mislabel_format"


class VersionedPickle:
    """Mixin for scikit-learn estimators, before all other bases: only the version that wrote a pickle reads it.

    Copies and clones are made within one version and are not affected.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # The version stands before the state: other versions may not even have the modules that the state names.
        return _blank, (type(self), __version__, FORMAT), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        return {**cast("dict[str, Any]", super().__getstate__()), _VERSION_KEY: __version__, _FORMAT_KEY: FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        _check(type(self), state.pop(_VERSION_KEY, None), state.pop(_FORMAT_KEY, None))
        super().__setstate__(state)  # type: ignore[misc]


def _blank(estimator: type, version: str, format_number: int) -> Any:
    """An estimator that is given its state next, if it was written by this version."""
    _check(estimator, version, format_number)
    return object.__new__(estimator)


def _check(estimator: type, version: str | None, format_number: int | None) -> None:
    """Refuse what another version wrote."""
    if (version, format_number) == (__version__, FORMAT):
        return
    if version is None:
        writer, install = "a version of mislabel that did not record its number", "install the version that wrote it"
    elif version == __version__:
        writer = f"a development version of mislabel {version} (format {format_number}, this one reads format {FORMAT})"
        install = "install the version that wrote it"
    else:
        writer, install = f"mislabel {version}", f"install that version (pip install mislabel=={version})"
    raise PickleVersionError(
        f"this {estimator.__name__} was pickled by {writer}, and is read by mislabel {__version__}: "
        f"what fitted models store differs between versions. Fit it again, or {install}."
    )
