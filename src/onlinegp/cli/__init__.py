"""The command line: `onlinegp COMMAND`. One module a command, no maths; each is imported only when it is called."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from onlinegp.streams.errors import printable

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
    argv = sys.argv[1:] if argv is None else list(argv)
    if sys.stderr is None:  # closed: `print` would send messages to the output instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        return _failed(OSError("standard output is closed. Send it to a file, or to /dev/null."))
    args = _parser(argv).parse_args(argv)
    _one_blas_thread()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _tell
            code = args.main(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has gone; there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("onlinegp: interrupted.", file=sys.stderr)
        return 130
    except MemoryError:
        return _failed(ValueError("there is not enough memory. Use a smaller --budget, --lags or --tune."))
    except (ValueError, TypeError, OSError, ArithmeticError) as error:
        return _failed(error)


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command in hand; the other ones are only listed."""
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
            command.set_defaults(main=module.main)
    return parser


def _failed(error: Exception) -> int:
    """Tell what went wrong, and return the exit code."""
    _tell(str(error))
    return getattr(error, "exit_code", 1)


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as the command line speaks, without a place in the source."""
    print(f"onlinegp: {printable(str(message))}", file=sys.stderr)


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
