"""No command destroys its input, nor one of its outputs with another: every pair of options that name files, made to
name the same one in every way there is."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest
from shell import FIXED, inside, onlinegp, started, write_csv

import onlinegp as ogp
from onlinegp.cli import COMMANDS
from onlinegp.cli.help import Parser
from onlinegp.kernels import RBF

QUICK = ["--kernel", "rbf(1.0)", "--noise", "0.1"]
# command: its other arguments, and a name for the file of each option; those in capitals are positional.
CASES = {
    "run": (
        [*QUICK, "--model", "klms", "--on-bad-row", "skip"],
        {
            "SOURCE": "data.csv",
            "--start": "model.ogp",
            "--out": "out.csv",
            "--rejects": "rejects.csv",
            "--events": "events.jsonl",
            "--summary": "summary.json",
            "--save": "saved.ogp",
            "--report": "report.html",
            "--checkpoint": "safe/checkpoint.ogp",
            "--store": "fleet.db",
        },
    ),
    "inspect": (["--key", "a"], {"MODEL": "model.ogp", "--out": "out.ogp"}),
    "predict": ([], {"MODEL": "model.ogp", "SOURCE": "data.csv", "--out": "out.csv", "--rejects": "rejects.csv"}),
    "forecast": (
        [*QUICK, "--model", "klms", "--steps", "3"],
        {
            "SOURCE": "data.csv",
            "--start": "model.ogp",
            "--future": "future.csv",
            "--out": "out.csv",
            "--plot": "picture.svg",
            "--save": "saved.ogp",
        },
    ),
    "tune": ([*QUICK, "--tune", "10"], {"SOURCE": "data.csv", "--out": "tuned.ogp"}),
    "compare": (
        [*QUICK, "--models", "klms", "--jobs", "1", "--runs", "2"],
        {
            "SOURCE": "data.csv",
            "--out": "picture.svg",
            "--json": "table.json",
            "--csv": "table.csv",
            "--latex": "table.tex",
        },
    ),
    "reproduce": (["fig1"], {"--kin40k": "arm.csv", "--out": "results/fig1.json"}),
}
FOLDERS = {("run", "--checkpoint"), ("reproduce", "--out")}
READ = {"SOURCE", "MODEL", "--start", "--future", "--kin40k"}
FINE = [{"--start", "--save"}]  # read at the beginning, replaced at the end


def collisions():
    for command, (_, files) in CASES.items():
        for one, other in combinations(files, 2):
            if not {one, other} <= READ and {one, other} not in FINE:
                yield command, one, other


def same(path: Path, option_file: str, way: str) -> Path:
    """Return another name of a file, made for an option whose file has such a name."""
    alias = path.parent / f"alias{Path(option_file).suffix}"
    if way == "the same path":
        return path
    if way == "another spelling":
        return path.parent / ".." / path.parent.name / "." / path.name
    if way == "a symbolic link":
        alias.symlink_to(path.name)
    else:
        os.link(path, alias)
    return alias


def written_out(command: str, paths: dict[str, Path]) -> list[str]:
    """Return the arguments of a command with these files."""
    arguments = [command, *CASES[command][0]]
    for option, path in paths.items():
        value = path.parent if (command, option) in FOLDERS else path
        arguments += [str(value)] if option.isupper() else [option, str(value)]
    return arguments


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def make_inputs(folder: Path) -> None:
    write_csv(folder / "data.csv", 20)
    (folder / "other.csv").write_text("x\n1\n")
    (folder / "arm.csv").write_text("x\n1\n")
    (folder / "future.csv").write_text("x\n1\n")
    ogp.KLMS(RBF(1.0)).fit([[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0]).save(folder / "model.ogp")


@pytest.mark.parametrize("way", ["the same path", "another spelling", "a symbolic link", "a hard link"])
@pytest.mark.parametrize("exists", [True, False])
def test_two_options_never_name_the_same_file(tmp_path, way, exists):
    tried = 0
    for number, (command, one, other) in enumerate(collisions()):
        folder = tmp_path / str(number)
        files = {option: folder / name for option, name in CASES[command][1].items()}
        for path in files.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        make_inputs(folder)
        if one not in READ and (command, one) not in FOLDERS and (exists or way == "a hard link"):
            files[one].write_bytes(b"precious")
        if (command, other) in FOLDERS:  # its file has a name of the command's own, so the other option takes that
            one, other = other, one
        if (command, one) in FOLDERS:
            files[one].write_bytes(b"precious")
        files[other] = same(files[one], CASES[command][1][other], way)
        before = contents(folder)
        told = inside(*written_out(command, files), code=1, cwd=folder).stderr.decode()
        assert one in told, (command, one, other, told)
        assert other in told, (command, one, other, told)
        assert "the same file" in told, (command, one, other, told)
        assert contents(folder) == before, (command, one, other)
        tried += 1
    assert tried == 43 + 1 + 5 + 11 + 1 + 10 + 1
    print(f"\n{tried} pairs of options that name the same file by {way} were refused", file=sys.stderr)


def test_parquet_does_not_overwrite_itself(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    csv = pytest.importorskip("pyarrow.csv")
    data = tmp_path / "data.parquet"
    parquet.write_table(csv.read_csv(write_csv(tmp_path / "data.csv", 20)), data)
    before = data.read_bytes()
    assert b"the same file" in inside("run", data, *FIXED, "--out", data, code=1).stderr
    assert data.read_bytes() == before


def test_redirected_streams_are_files_too(tmp_path):
    """`run - < data --out data` and `run data >> data`."""
    data = write_csv(tmp_path / "data.csv", 20)
    before = data.read_bytes()
    with open(data, "rb") as file:
        process = started("run", "-", *FIXED, "--out", data, stdin=file)
        assert b"the same file" in process.communicate()[1]
    assert process.returncode == 1
    with open(data, "ab") as file:
        process = started("run", data, *FIXED, stdin=subprocess.DEVNULL, stdout=file)
        assert b"the same file" in process.communicate()[1]
    assert process.returncode == 1
    assert data.read_bytes() == before


def test_a_log_that_is_appended_to_keeps_its_beginning(tmp_path):
    """`>> log`: opened by its name, /dev/stdout would be cut to nothing first."""
    data, log = write_csv(tmp_path / "data.csv", 20), tmp_path / "log"
    for more in (["--out", "/dev/stdout"], ["--out", "/dev/null", "--summary", "/dev/stdout"]):
        log.write_bytes(b"precious\n")
        with open(log, "ab") as file:
            process = started("run", data, *FIXED, *more, stdin=subprocess.DEVNULL, stdout=file)
            assert process.communicate() is not None
        assert process.returncode == 0
        assert log.read_bytes().startswith(b"precious\n")
        assert log.read_bytes().count(b"\n") > 10
    args = ["run", data, *FIXED, "--checkpoint", tmp_path / "safe", "--out"]
    for device in ("/dev/stdout", "/dev/null"):
        assert b"needs --out FILE" in inside(*args, device, code=4).stderr


def test_devices_and_a_renewed_model_are_no_collisions(tmp_path):
    data, model = write_csv(tmp_path / "data.csv", 20), tmp_path / "model.ogp"
    nowhere = ["--out", "/dev/null", "--rejects", "/dev/null", "--summary", "/dev/null"]
    inside("run", data, *FIXED, *nowhere, "--save", model)
    inside("run", data, "--start", model, "--save", model, "--out", "/dev/null")
    assert ogp.load(model).n_samples_seen_ == 40
    out = onlinegp("run", data, *FIXED, "--out", "/dev/stdout", "--summary", "/dev/stdout").stdout
    assert out.count(b"\n") > 21


def path_options(command: str) -> set[str]:
    parser = Parser()
    import_module(f"onlinegp.cli.{command}").add_arguments(parser)
    named = [action for action in parser._actions if action.metavar in ("SOURCE", "MODEL", "FILE", "DIR")]
    return {action.option_strings[0] if action.option_strings else action.dest.upper() for action in named}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_names_a_file_is_declared(command):
    paths = getattr(import_module(f"onlinegp.cli.{command}"), "PATHS", None)
    known = set() if paths is None else {*paths.reads, *paths.appends, *paths.replaces, *paths.folders}
    assert path_options(command) == known
    assert command not in CASES or set(CASES[command][1]) == known - AUTOMATIC.get(command, set())


@pytest.mark.parametrize("other", ["SOURCE", "--out", "--plot"])
def test_the_report_of_a_forecast_replaces_no_other_file(tmp_path, other):
    data = write_csv(tmp_path / "data.csv", 20)
    same = data if other == "SOURCE" else tmp_path / "one.html"
    options = [] if other == "SOURCE" else [other, same]
    before = contents(tmp_path)
    told = inside("forecast", data, *options, "--report", same, code=1).stderr.decode()
    assert "the same file" in told
    assert "--report" in told
    assert contents(tmp_path) == before


# Options of the automatic forecast, which takes no model and so is none of the CASES
AUTOMATIC = {"forecast": {"--report"}}
OUTPUTS = [(command, option) for command, (_, files) in CASES.items() for option in files if option not in READ]
STREAMS = {("run", "--out"), ("predict", "--out"), ("forecast", "--out")}  # where - is standard output
WRONG = [
    *((command, option, "other.csv") for command, option in OUTPUTS),
    *((command, option, "locked") for command, option in OUTPUTS),
    *((command, option, "none") for command, option in OUTPUTS if (command, option) not in FOLDERS),
    *((command, option, "a folder") for command, option in OUTPUTS if (command, option) not in FOLDERS),
    *((command, option, "-") for command, option in OUTPUTS if (command, option) not in FOLDERS | STREAMS),
]


@pytest.mark.parametrize(("command", "option", "wrong"), WRONG)
def test_outputs_are_checked_before_the_run(tmp_path, monkeypatch, command, option, wrong):
    make_inputs(tmp_path)
    (tmp_path / "locked").mkdir()
    files = {name: tmp_path / path for name, path in CASES[command][1].items()}
    if wrong == "a folder":
        files[option].mkdir()
    elif wrong == "-":
        files[option] = Path("-")
    else:
        files[option] = tmp_path / wrong / files[option].name
    allowed = os.access  # permissions do not bind everybody who runs the tests
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and allowed(path, mode))
    before = contents(tmp_path)
    told = inside(*written_out(command, files), code=1, cwd=tmp_path).stderr.decode()
    assert "cannot" in told or "not possible" in told
    assert contents(tmp_path) == before


@pytest.mark.parametrize("wrong", [["--model", "none"], ["--set", "step=-1"], ["--target", "none"], ["--level", "1"]])
def test_a_wrong_option_leaves_the_old_output(tmp_path, wrong):
    data, out = write_csv(tmp_path / "data.csv", 20), tmp_path / "out.csv"
    out.write_bytes(b"precious")
    inside("run", data, *QUICK, "--model", "klms", *wrong, "--out", out, code=1)
    assert out.read_bytes() == b"precious"
