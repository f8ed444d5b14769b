"""Faults on purpose: the k-th call of anything that changes a disk fails."""

import builtins
import errno
import io
import os
from contextlib import contextmanager

#: Functions that change what is on a disk, or wait for it.
CALLS = ("open", "replace", "rename", "link", "unlink", "fsync", "mkdir", "rmdir", "ftruncate", "posix_fallocate")


class DiskFault(OSError):
    """A disk that fails."""


class Faults:
    """Counts calls, and fails the one with the given number; all of them from there on if it ``lasts``."""

    def __init__(self, number, *, lasts=False, kind=errno.ENOSPC):
        self.count, self.number, self.lasts, self.kind = 0, number, lasts, kind

    def tick(self):
        self.count += 1
        if self.count == self.number or (self.lasts and self.count > self.number > 0):
            raise DiskFault(self.kind, os.strerror(self.kind), "the disk")

    @property
    def happened(self):
        return self.count >= self.number


class _File:
    """A file whose writes may fail."""

    def __init__(self, file, faults):
        self._file, self._faults = file, faults

    def write(self, data):
        self._faults.tick()
        return self._file.write(data)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        self._faults.tick()
        return self._file.flush()

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()

    def __iter__(self):
        return iter(self._file)


@contextmanager
def faults(monkeypatch, number, **options):
    """Fail the call with this number inside the block."""
    planned = Faults(number, **options)
    with monkeypatch.context() as patched:
        for name in CALLS:
            original = getattr(os, name)

            def call(*arguments, _original=original, **more):
                planned.tick()
                return _original(*arguments, **more)

            patched.setattr(os, name, call)
        opened, from_handle = builtins.open, os.fdopen

        def wrapped_open(file, mode="r", *arguments, **more):
            found = opened(file, mode, *arguments, **more)
            return _File(found, planned) if set(mode) & set("wax+") else found

        def wrapped_fdopen(handle, mode="r", *arguments, **more):
            found = from_handle(handle, mode, *arguments, **more)
            return _File(found, planned) if set(mode) & set("wax+") else found

        patched.setattr(builtins, "open", wrapped_open)
        patched.setattr(io, "open", wrapped_open)
        patched.setattr(os, "fdopen", wrapped_fdopen)
        yield planned
