"""The decisions of a review beside its page: read, and replaced only by whoever knows what stands there."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mislabel._common.atomic_files import alone_in, atomic_write
from mislabel.data.corrections import decisions_in
from mislabel.data.formats.corrected_copy import Decisions
from mislabel.errors import DecisionsError, StaleDecisionsError

#: The file in the folder of an audit.
NAME = "decisions.json"
#: What is the revision of no file.
NOTHING = "none"


@dataclass(frozen=True)
class Kept:
    """What stands in the file.

    revision : changes with every byte of it. content : as JSON gives it; None where there are no decisions about this audit.
    problem : why what is there is of no use, in a sentence.
    """

    revision: str
    content: dict[str, Any] | None = None
    problem: str | None = None


class KeptDecisions:
    """The decisions.json in the folder of an audit, whose page holds ``content``.

    What somebody else wrote there is never lost: the first save that replaces it keeps it as ``decisions-1.json``, with the next
    number that is free.
    """

    def __init__(self, folder: Path, content: dict[str, Any]) -> None:
        self.path = folder / NAME
        self._label, file = content["label"], content["file"]
        self._fingerprint, self._rows, self._sheet = file["sha256"], file["rows"], file.get("sheet")
        self._own = NOTHING
        self._alone = threading.Lock()

    def read(self) -> Kept:
        """What stands in the file now."""
        raw = self._bytes()
        revision = _revision(raw)
        if raw is None:
            return Kept(revision)
        try:
            self._checked(raw)
        except DecisionsError as error:
            return Kept(revision, problem=f"{str(error).rstrip('.')}. It will be kept under another name.")
        # The browser knows no NaN.
        return Kept(revision, json.loads(raw.decode("utf-8-sig"), parse_constant=lambda name: None))

    def save(self, raw: bytes, revision: str) -> str:
        """Write decisions in place of those with this revision; the new one.

        StaleDecisionsError where the file is another one by now, DecisionsError for what are no decisions about this audit.
        """
        self._checked(raw)
        with self._alone, alone_in(self.path.parent):
            now = self._bytes()
            if _revision(now) != revision:
                raise StaleDecisionsError(f"{self.path} was changed since it was read: nothing was saved.")
            if now is not None and revision != self._own and now != raw:
                self._keep(now)
            with atomic_write(self.path) as file:
                file.write(raw)
            self._own = _revision(raw)
            return self._own

    def wait(self) -> None:
        """Let a save that has begun come to its end."""
        with self._alone:
            pass

    def count(self) -> int:
        """How many decisions stand in the file."""
        content = self.read().content
        return 0 if content is None else len(content["decisions"])

    def _checked(self, raw: bytes) -> Decisions:
        found = decisions_in(raw, self.path)
        if found.fingerprint != self._fingerprint or found.rows != self._rows:
            raise DecisionsError(f"{self.path} holds decisions about another file ({found.file or 'without a name'}).")
        if found.label != self._label:
            raise DecisionsError(f"{self.path} holds decisions about the label {found.label!r}.")
        if found.options.sheet != self._sheet:
            raise DecisionsError(f"{self.path} holds decisions about the sheet {found.options.sheet!r}.")
        return found

    def _bytes(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None

    def _keep(self, raw: bytes) -> None:
        number = 1
        while True:
            try:
                with atomic_write(self.path.with_name(f"decisions-{number}.json"), overwrite=False) as file:
                    file.write(raw)
            except FileExistsError:
                number += 1
            else:
                return


def _revision(raw: bytes | None) -> str:
    return NOTHING if raw is None else hashlib.sha256(raw).hexdigest()[:32]
