import os
import signal
from functools import cache
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # under nohup or in a background job; child processes inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the public data sets, which the environment variable ONLINEGP_DATA names."""
    folder = Path(os.environ.get("ONLINEGP_DATA", ""))
    if not os.environ.get("ONLINEGP_DATA") or not folder.is_dir():
        pytest.skip("the environment variable ONLINEGP_DATA names no folder of data sets")
    return folder.resolve()


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
