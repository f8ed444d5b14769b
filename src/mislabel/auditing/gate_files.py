"""A gate as two files: gate.json with everything that has words, gate.npz with plain arrays; neither holds code or a pickle."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mislabel._common.atomic_files import atomic_folder
from mislabel._common.spreading import evenly_spread
from mislabel._common.version import __version__
from mislabel.auditing.request import Request
from mislabel.auditing.table_features import TableFeatures
from mislabel.data.lists import ListColumns, NameLists
from mislabel.data.number_text import Notation
from mislabel.data.plain_columns import PlainColumns
from mislabel.data.plain_encoder import NotPlainError, PlainPipeline, plain_form
from mislabel.data.tables import FeatureEncoder
from mislabel.errors import GateError, MislabelError
from mislabel.estimators.saved_model import NotSavableError, SavedModel, saved
from mislabel.report.content import Source
from mislabel.report.findings import Findings

FORMAT = "mislabel-gate/1"
WORDS, ARRAYS = "gate.json", "gate.npz"
FILES = (WORDS, ARRAYS)
#: Rows that are encoded once more before a gate is kept, and by how much they may differ, relative to their size.
ENCODED_AGAIN = 5000
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class KeptGate:
    """A gate in words, as JSON has them, and its arrays; or a sentence why there is none."""

    words: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @property
    def why_not(self) -> str | None:
        """Why there is no gate, as a sentence; None where there is one."""
        found = self.words["why_not"]
        return None if found is None else str(found)


def gate_of(audit: Findings, source: Source, request: Request | None) -> KeptGate:
    """What is kept of an audit to judge new rows by."""
    words = {
        "format": FORMAT,
        "mislabel": __version__,
        "why_not": None,
        "file": source.name,
        "label": audit.label,
        "id": audit.id,
        "rows": len(audit.table),
        "decision": {
            "fdr": float(audit.fdr),
            "threshold": audit.threshold,
            "cutoff": None if audit.cutoff is None else float(audit.cutoff),
            "score": audit.score,
            "confidence": float(audit.confidence),
        },
    }
    try:
        beside = _beside(request)
        kept = saved(audit.model)
        table, arrays = _told_table(audit)
    except (NotSavableError, NotPlainError) as reason:
        return KeptGate({**words, "why_not": f"No gate for new rows was kept: {reason}."}, {})
    options = source.read_options
    read = {name: options.get(name) for name in ("sheet", "decimal", "thousands", "na")}
    if read["decimal"] is None and source.decimal == ",":
        read["decimal"] = ","
    parts = {"read": read, "beside": beside, "table": table, "model": kept.told}
    return KeptGate({**words, **parts}, {**arrays, **{f"model/{name}": array for name, array in kept.arrays.items()}})


def _beside(request: Request | None) -> dict[str, Any]:
    """Columns that are read beside the features, by name; arrays cannot be, since new rows do not have them."""
    if request is None:
        raise NotSavableError("it is not known how the audit was asked for")
    given = {
        "errors": request.errors,
        **{name: getattr(request.beside, name) for name in ("predictions", "prediction_std", "censored")},
    }
    for name, value in given.items():
        if not (value is None or isinstance(value, str) or (name == "errors" and np.ndim(value) == 0)):
            raise NotSavableError(f"{name} were passed as an array: name a column, which new rows can have, too")
    errors = given["errors"]
    given["errors"] = errors if errors is None or isinstance(errors, str) else float(errors)
    return {**given, "process_on_residuals": request.beside.process_on_residuals}


def _told_table(audit: Findings) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """How columns become features; None for labels that are judged without any."""
    model, table = audit.model, audit.model.table_
    if table is None and not model.n_features_in_:
        return None, {}
    if table is None:
        raise NotSavableError("tables that were read in a memory budget, or stayed on workers, are not kept yet")
    if table.types is not None:
        raise NotSavableError("the mean model picks columns by their names, by code of its own")
    pipeline, plain = plain_form(table.encoder), table.plain
    told = {
        "used": table.used,
        "kinds": {name: plain.kinds[name] for name in table.used},
        "notations": {name: asdict(plain.notations[name]) for name in table.used if name in plain.notations},
        "truth": sorted(plain.truth & {*table.used}),
        "types": table.encoder.types,
        "sizes": table.encoder.sizes,
        "lists": [asdict(entry) for entry in table.encoder.lists.lists],
        "names": table.encoder.names,
        "rules": None if pipeline is None else pipeline.rules,
    }
    arrays = {}
    if pipeline is not None:
        arrays = {f"table/{name}": getattr(pipeline, name) for name in ("fill", "flagged", "center", "unit")}
    _check_encoded(audit, told, arrays)
    return told, arrays


def _check_encoded(audit: Findings, told: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Whether what is kept encodes the rows of the audit as they were encoded."""
    frame, points = audit.frame, audit.model._points
    if not isinstance(frame, pd.DataFrame) or not isinstance(points, np.ndarray):
        raise NotSavableError("tables that were read in a memory budget, or stayed on workers, are not kept yet")
    some = evenly_spread(len(frame), ENCODED_AGAIN)
    try:
        found = table_of(told, arrays).of_rows(frame.iloc[some])[0]
    except (MislabelError, ValueError, TypeError) as error:
        raise NotSavableError(f"its rows could not be encoded again ({error})") from None
    wanted = points[some]
    size = np.max(np.abs(wanted), axis=0, initial=1.0) if len(wanted) else 1.0
    if found.shape != wanted.shape or not np.all(np.abs(found - wanted) <= SAME * size):
        raise NotSavableError("what is known of the encoding of its columns does not give the same numbers again")


def table_of(told: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> TableFeatures:
    """How columns become features, again."""
    notations = {name: Notation(**fields) for name, fields in told["notations"].items()}
    plain = PlainColumns(dict(told["kinds"]), notations, frozenset(told["truth"]), [])
    lists = ListColumns(tuple(NameLists(**entry) for entry in told["lists"]))
    encoder = FeatureEncoder(dict(told["types"]), {name: float(size) for name, size in told["sizes"].items()}, lists)
    encoder.names = list(told["names"])
    if told["rules"] is not None:
        own = {name: arrays[f"table/{name}"] for name in ("fill", "flagged", "center", "unit")}
        encoder.pipeline = PlainPipeline(list(told["rules"]), **own)
    return TableFeatures(plain, list(told["used"]), encoder, None)


def model_in(kept: KeptGate) -> SavedModel:
    """The part that is the model."""
    arrays = {name.removeprefix("model/"): array for name, array in kept.arrays.items() if name.startswith("model/")}
    return SavedModel(kept.words["model"], arrays)


def write_gate(kept: KeptGate, folder: Path) -> None:
    """Both files into a folder of their own, or beside other results; each replaces an older one."""
    with atomic_folder(folder, FILES) as work:
        write_files(kept, work)


def write_files(kept: KeptGate, folder: Path) -> None:
    """Both files, into a folder that is put in place as a whole."""
    packed = io.BytesIO()
    np.savez(packed, **kept.arrays)  # type: ignore[arg-type]  # names of arrays, none of them an option
    content = packed.getvalue()
    (folder / ARRAYS).write_bytes(content)
    words = {**kept.words, "arrays": {ARRAYS: hashlib.sha256(content).hexdigest()}}
    text = json.dumps({**words, "fingerprint": _fingerprint(words)}, ensure_ascii=True, allow_nan=False, indent=1)
    (folder / WORDS).write_text(text + "\n", encoding="utf-8")


def _fingerprint(words: dict[str, Any]) -> str:
    """SHA-256 of the words, whatever the order and the blanks they are written with."""
    return hashlib.sha256(json.dumps(words, sort_keys=True, allow_nan=False).encode()).hexdigest()


def read_gate(folder: Path) -> KeptGate:
    """The gate in a folder; refuses a folder without one, and files that are damaged or those of something else."""
    if not folder.is_dir():
        raise GateError(f"{folder}: no such folder. Name the folder that mislabel audit wrote its results into.")
    words = _words_in(folder)
    if words["why_not"] is not None:
        return KeptGate(words, {})
    wanted = words["arrays"].get(ARRAYS)
    try:
        content = (folder / ARRAYS).read_bytes()
    except OSError as error:
        raise GateError(
            f"{folder / ARRAYS} cannot be read ({error.strerror}): audit the accepted rows again."
        ) from None
    if hashlib.sha256(content).hexdigest() != wanted:
        raise _damaged(folder / ARRAYS)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as packed:
            return KeptGate(words, {name: packed[name] for name in packed.files})
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile):
        raise _damaged(folder / ARRAYS) from None


def _words_in(folder: Path) -> dict[str, Any]:
    path = folder / WORDS
    if not path.exists():
        raise GateError(
            f"{folder} holds no gate ({WORDS}): it is not a folder that mislabel audit wrote its results into, or an older "
            "version did. Audit the accepted rows again."
        )
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise _damaged(path) from None
    if not isinstance(words, dict) or not str(words.get("format", "")).startswith("mislabel-gate/"):
        raise GateError(
            f"{path} is not a gate of mislabel: name the folder that mislabel audit wrote its results into."
        )
    if words["format"] != FORMAT:
        raise GateError(
            f"{path} was written by mislabel {words.get('mislabel')} as {words['format']}, and this version "
            f"({__version__}) reads {FORMAT}: audit the accepted rows again."
        )
    told = words.pop("fingerprint", None)
    try:
        same = told == _fingerprint(words)
    except (ValueError, TypeError, RecursionError):
        same = False
    if not same:
        raise _damaged(path)
    return words


def _damaged(path: Path) -> GateError:
    return GateError(
        f"{path} is damaged or was changed: its fingerprint is not that of its content. Audit the accepted rows again."
    )
