import signal
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for folder in (HERE, HERE / "cli", HERE / "streams"):  # so that every test finds `models`, `shell` and `outcomes`
    sys.path.insert(0, str(folder))

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # under nohup or in a background job; child processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the public data sets, where it lies beside the project."""
    folder = HERE.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with the data sets is not here")
    return folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Keep tests of a file that has a fixture of its module in one process, where it is made once: Spark's session."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.split("::")[0]
            return path if shares_a_fixture(config.rootpath / path) else nodeid

    return Together(config, log)


@cache
def shares_a_fixture(path: Path) -> bool:
    return 'scope="module"' in path.read_text("utf-8")
