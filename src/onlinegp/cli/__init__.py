"""The command line: `onlinegp COMMAND`. One module per command, without math, imported when the command runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from onlinegp import __version__
from onlinegp.cli.help import Parser
from onlinegp.cli.process import Terminated, drop_output, interruptible, one_blas_thread, stand_in_for_closed_streams
from onlinegp.streams.errors import printable

# command: its line in --help. The module of this name has add_arguments(parser) and main(args) -> exit code
COMMANDS = {
    "run": "predict each row of a file or a pipe, with intervals, and then learn it",
    "forecast": "predict the next values of a series, with intervals that widen",
    "compare": "run several models on the same stream: a ranked table and a plot",
    "tune": "find the kernel, the noise and other parameters of a model from the first rows of a stream",
    "predict": "predict with a saved model, without learning",
    "inspect": "show the contents of a model file, a checkpoint or a store",
    "confirm": "tell a saved detector that an event was real, so that it reports similar events",
    "models": "list all models with their parameters, cost and citation",
    "demo": "run six models on a simulated stream that changes: a table and a picture",
    "info": "show the engine, the instruction set and the versions",
    "reproduce": "run the experiments of papers: figures, numbers, and a report that checks their claims",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 not understood, 130 interrupted, 141 output closed.

    Errors with an attribute `exit_code` determine the code: 3 for bad data, 4 for a checkpoint that cannot be used.
    """
    stand_in_for_closed_streams()
    try:
        with warnings.catch_warnings(), interruptible():
            warnings.showwarning = _tell
            code = _command(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of the output has closed the pipe
        drop_output()
        return 141
    except KeyboardInterrupt:
        print("onlinegp: interrupted.", file=sys.stderr)
        return 130
    except Terminated as end:
        with suppress(OSError):  # the terminal may be gone
            print("onlinegp: terminated.", file=sys.stderr)
        return end.exit_code
    except MemoryError:
        _tell("there is not enough memory. Use a smaller --budget, --lags or --tune.")
        drop_output()
        return 1
    except (ValueError, TypeError, OSError, ArithmeticError) as error:
        _tell(_told(error))
        drop_output()
        return getattr(error, "exit_code", 1)


def _command(argv: list[str]) -> int:
    """Run a command and return its exit code, or raise an exception."""
    parser = Parser(
        prog="onlinegp",
        description="Online regression with honest uncertainty.",
        epilog="`onlinegp COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"onlinegp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name in argv[:1]:
            module = import_module(f"onlinegp.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(main=module.main, paths=getattr(module, "PATHS", None))
    try:
        args = parser.parse_args(_with_negative_codes(argv))
    except SystemExit:
        sys.stdout.flush()  # after the help, the pipe may be closed, too
        raise
    one_blas_thread()
    if args.paths is not None:
        args.paths.check(args)
    return args.main(args)


def _with_negative_codes(argv: list[str]) -> list[str]:
    """Join `--na-values -9999,NA` into one argument: argparse would treat -9999,NA as an option."""
    if "--na-values" not in argv[:-1]:
        return argv
    i = argv.index("--na-values")
    return [*argv[:i], f"--na-values={argv[i + 1]}", *argv[i + 2 :]]


def _told(error: Exception) -> str:
    """Return the message of an error. For errors of the system: the file and the text, without the error number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _tell(message: Warning | str, *_: object, **__: object) -> None:
    """Print a message or a warning, without its position in the source."""
    print(f"onlinegp: {printable(str(message))}", file=sys.stderr)
