"""The command line: `onlinegp COMMAND`. One module a command, no maths; each is imported only when it is called."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

# command: the line that --help shows. The module of that name has add_arguments(parser) and main(args) -> exit code.
COMMANDS = {
    "run": "predict a stream row by row, with intervals, and learn it: from a file or a pipe",
    "compare": "put the same stream through several models: a ranked table and a plot",
    "tune": "find hyperparameters from the first rows of a stream, by maximum likelihood",
    "predict": "predict with a saved model, without learning",
    "inspect": "show what is in a model file or a checkpoint",
    "models": "list every algorithm with its parameters, cost and citation",
    "demo": "stream a channel that changes through four filters; a table and a picture",
    "info": "show which engine runs here, on which instruction set, with which versions",
    "reproduce": "redo the experiments of the paper: figures, numbers, and a report that checks its claims",
}


BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 not understood, 130 interrupted, 141 output closed.

    An error may carry another one as its `exit_code`: 3 for bad data, 4 for a checkpoint that cannot be used.
    """
    _standard_streams()
    try:
        with warnings.catch_warnings(), _terminable():
            warnings.showwarning = _tell
            code = _command(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has gone; there is nobody to tell
        _drop_output()
        return 141
    except KeyboardInterrupt:
        print("onlinegp: interrupted.", file=sys.stderr)
        return 130
    except Terminated:
        print("onlinegp: terminated.", file=sys.stderr)
        return 143
    except (ValueError, TypeError, OSError) as error:
        print(f"onlinegp: {_told(error)}", file=sys.stderr)
        _drop_output()
        return getattr(error, "exit_code", 1)


def _command(argv: list[str]) -> int:
    """Run a command and return its exit code, or raise what ended it."""
    parser = argparse.ArgumentParser(
        prog="onlinegp",
        description="Regression on streams with honest uncertainty.",
        epilog="`onlinegp COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"onlinegp {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name in argv[:1]:
            module = import_module(f"onlinegp.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(main=module.main, paths=getattr(module, "PATHS", None))
    try:
        args = parser.parse_args(argv)
    except SystemExit:
        sys.stdout.flush()  # the help, which may have lost its reader too
        raise
    _one_blas_thread()
    if args.paths is not None:
        args.paths.check(args)
    return args.main(args)


def _drop_output() -> None:
    """Write out what standard output still holds, or drop it where that fails: nothing is left to fail at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Terminated(BaseException):
    """SIGTERM, as Ctrl-C is a KeyboardInterrupt: what is open is closed, what was started is ended."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Turn SIGTERM into an exception, where signals can be caught."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, on)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _told(error: Exception) -> str:
    """Return the message of an error, of the system's ones with the file and without the number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _standard_streams() -> None:
    """Stand in for standard streams that were closed: nothing to read, nobody who reads, nobody to tell.

    Otherwise the next file that is opened would take their number, and receive what is meant for them.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        reader, writer = os.pipe()
        os.dup2(writer, 1)
        for handle in {reader, writer} - {1}:
            os.close(handle)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as the command line speaks, without a place in the source."""
    print(f"onlinegp: {message}", file=sys.stderr)


def _one_blas_thread() -> None:
    """Keep BLAS to one thread, unless the user said otherwise: here models run side by side, and threads that wait for
    each other on busy cores take longer than one alone."""
    if any(name in os.environ for name in BLAS_THREADS):
        return
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))  # for what is loaded later, and for processes of our own
    threadpool_limits(1, user_api="blas")


def _version() -> str:
    from onlinegp import __version__

    return __version__
