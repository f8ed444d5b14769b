"""Damaged files are read in processes of their own, with limits on time and memory, and watched from outside."""

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import Any

from mislabel.errors import MislabelError
from tests.fuzz.checks import WrongResultError
from tests.fuzz.seeds import Seed
from tests.fuzz.targets import find_target

#: Outcomes that are as they should be: refused with an error of this package, or read.
FINE = ("typed", "accepted")
#: Bytes that one process may take beyond what it has at its start.
MEMORY = 4 << 30


@dataclass(frozen=True)
class Limits:
    """Seconds of computing after which a case is stopped from inside, and of waiting after which its process is killed.

    Computing, because a machine that is busy with other things takes longer for everything.
    """

    stop: float = 10.0
    kill: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """What became of one file.

    kind : one of FINE, or "untyped" (another exception), "wrong" (a result that is not right), "hang", "crash".
    cause : type and place of the error, by which outcomes are grouped.
    """

    kind: str
    cause: str = ""


class _TimeIsUp(BaseException):
    """Not an Exception: no reader may take it for an unreadable file."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TimeIsUp


def run_case(target: str, case: Seed, folder: Path, limits: Limits) -> Outcome:
    """Read one file in this process. The folder is empty before and after."""
    path = folder / f"input{case.suffix}"
    path.write_bytes(case.data)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            outcome = _outcome(lambda: find_target(target).run(path), limits.stop)
        if outcome.kind in FINE:
            outcome = _aftermath(path, case.data, outcome, seen)
    finally:
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return outcome


def _outcome(run: Callable[[], None], seconds: float) -> Outcome:
    try:
        # Again and again, should a callback of a library swallow the first one.
        signal.setitimer(signal.ITIMER_PROF, seconds, 5.0)
        try:
            run()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except MislabelError:
        return Outcome("typed")
    except _TimeIsUp as error:
        return Outcome("hang", f"more than {seconds:g} s {_place(error)}")
    except WrongResultError as error:
        return Outcome("wrong", str(error))
    except Exception as error:
        return Outcome("untyped", f"{type(error).__name__} {_place(error)}")
    return Outcome("accepted")


def _place(error: BaseException) -> str:
    """The last line of this package on the way to an error, and the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/mislabel/" in frame.filename]
    places = own[-1:] if isinstance(error, _TimeIsUp) else [*own[-1:], *frames[-1:]]
    names = [f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno} {frame.name}" for frame in places]
    return "at " + " <- ".join(dict.fromkeys(names))


def _aftermath(path: Path, data: bytes, outcome: Outcome, seen: Iterable[warnings.WarningMessage]) -> Outcome:
    """Warnings of arithmetic, files left behind and changed inputs are failures even of cases that ended well."""
    for warning in seen:
        if issubclass(warning.category, RuntimeWarning):
            where = "/".join(Path(warning.filename).parts[-2:])
            return Outcome("untyped", f"{warning.category.__name__} at {where}:{warning.lineno}: {warning.message}")
    if {file.name for file in path.parent.iterdir()} - {path.name, "out"}:
        return Outcome("wrong", "files were left behind beside the input")
    if not path.is_file() or path.read_bytes() != data:
        return Outcome("wrong", "the input was changed")
    return outcome


def smaller(target: str, case: Seed, cause: str, folder: Path, limits: Limits, effort: int) -> Iterator[Seed]:
    """Ever smaller files with the same outcome: pieces are left out, halves first, single bytes last."""
    size, tries = max(len(case.data) // 2, 1), 0
    while tries < effort:
        at, before = 0, len(case.data)
        while at < len(case.data) and tries < effort:
            shorter = replace(case, data=case.data[:at] + case.data[at + size :])
            tries += 1
            if shorter.data and run_case(target, shorter, folder, limits).cause == cause:
                case = shorter
                yield case
            else:
                at += size
        if size == 1 and len(case.data) == before:
            return
        size = max(size // 2, 1)


# The processes --------------------------------------------------------------------------------------------------------


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _be_worker(connection: Connection, folder: str, job: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    import pyarrow

    pyarrow.set_cpu_count(1)
    signal.signal(signal.SIGPROF, _stop)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries in C complain about every file
    _limit_memory()
    job(connection.send, Path(folder), *arguments)
    connection.send(None)


def _run_numbers(send: Any, folder: Path, target: str, seed: int, numbers: range, limits: Limits) -> None:
    for number in numbers:
        case = find_target(target).case(target, seed, number)
        send((number, None))
        send((number, run_case(target, case, folder, limits)))


def _run_file(send: Any, folder: Path, target: str, case: Seed, limits: Limits) -> None:
    send((0, None))
    send((0, run_case(target, case, folder, limits)))


def _minimise(send: Any, folder: Path, target: str, case: Seed, cause: str, limits: Limits, effort: int) -> None:
    for found in smaller(target, case, cause, folder, limits, effort):
        send(found)


def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fuzz.worker"])
    return context


class _Process:
    """A worker, the end of its pipe, and its folder, which goes with it however it ends."""

    def __init__(self, job: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        context = _context()
        self.pipe, theirs = context.Pipe(duplex=False)
        self._folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        settings = (theirs, self._folder.name, job, arguments)
        self.process = context.Process(target=_be_worker, args=settings, daemon=True)
        self.process.start()
        theirs.close()
        self.heard = time.monotonic()

    def receive(self) -> Any:
        """The next message; EOFError where the process died."""
        self.heard = time.monotonic()
        return self.pipe.recv()

    def exit_code(self) -> int | None:
        """How a process ended whose pipe is closed; minus the number of a signal that ended it."""
        self.process.join(1.0)
        return self.process.exitcode

    def end(self) -> None:
        """End the process, whatever it does, and remove what it left."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self._folder.cleanup()


class _Share:
    """Some of the cases of a target, in one process after the other."""

    def __init__(self, target: str, seed: int, numbers: range, limits: Limits) -> None:
        self._settings, self._limits = (target, seed), limits
        self.numbers = numbers
        self._begin()

    def _begin(self) -> None:
        self.current = self.numbers.start
        self.worker = _Process(_run_numbers, (*self._settings, self.numbers, self._limits))

    def step(self) -> tuple[int, Outcome] | None:
        """What came through the pipe; None where it says nothing about a case."""
        try:
            message = self.worker.receive()
        except EOFError:
            code = self.worker.exit_code()
            self.worker.end()
            return self._lost(Outcome("crash", f"the process ended with {code}"))
        if message is None:
            self.worker.end()
            self.numbers = range(0)
            return None
        self.current, outcome = message
        if outcome is not None:
            self.numbers = range(self.current + 1, self.numbers.stop)
            return self.current, outcome
        return None

    def overdue(self) -> tuple[int, Outcome] | None:
        """The case of a process that has not answered for too long; it is killed."""
        if time.monotonic() - self.worker.heard <= self._limits.kill:
            return None
        self.worker.end()
        return self._lost(Outcome("hang", f"did not answer for {self._limits.kill:g} s"))

    def _lost(self, outcome: Outcome) -> tuple[int, Outcome]:
        number = self.current
        self.numbers = range(number + 1, self.numbers.stop)
        if self.numbers:
            self._begin()
        return number, outcome


#: Cases in one process: what libraries keep in memory does not add up for long.
_CHUNK = 1000


def run_numbers(target: str, seed: int, cases: int, limits: Limits, workers: int = 1) -> Iterator[tuple[int, Outcome]]:
    """Outcomes of the cases 0, 1, ... of a target, as they come."""
    waiting = deque(range(start, min(start + _CHUNK, cases)) for start in range(0, cases, _CHUNK))
    shares: list[_Share] = []
    try:
        while waiting or shares:
            while waiting and len(shares) < workers:
                shares.append(_Share(target, seed, waiting.popleft(), limits))
            ready = wait([share.worker.pipe for share in shares], timeout=1.0)
            for share in shares:
                result = share.step() if share.worker.pipe in ready else share.overdue()
                if result is not None:
                    yield result
            shares = [share for share in shares if share.numbers]
    finally:
        for share in shares:
            share.worker.end()


def run_file(target: str, case: Seed, limits: Limits) -> Outcome:
    """The outcome of one file, in a process of its own."""
    worker = _Process(_run_file, (target, case, limits))
    try:
        while worker.pipe.poll(limits.kill):
            message = worker.receive()
            if message[1] is not None:
                return message[1]
        return Outcome("hang", f"did not answer for {limits.kill:g} s")
    except EOFError:
        return Outcome("crash", f"the process ended with {worker.exit_code()}")
    finally:
        worker.end()


def minimise(target: str, case: Seed, cause: str, limits: Limits, effort: int) -> Seed:
    """A smaller file with the same outcome, as far as a limited number of tries leads."""
    worker = _Process(_minimise, (target, case, cause, limits, effort))
    deadline = time.monotonic() + limits.kill
    try:
        while worker.pipe.poll(max(deadline - time.monotonic(), 0.0)):
            message = worker.receive()
            if message is None:
                break
            case = message
    except EOFError:
        pass  # what was found before the process died stays
    finally:
        worker.end()
    return case
