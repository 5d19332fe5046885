import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for folder in (HERE, HERE / "cli", HERE / "streams"):  # so that every test finds `models`, `shell` and `outcomes`
    sys.path.insert(0, str(folder))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the public data sets, where it lies beside the project."""
    folder = HERE.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with the data sets is not here")
    return folder


@pytest.hookimpl(tryfirst=True)  # before the plugin that reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a fixture of their module in one process, so that it is made once: a session of Spark."""
    for item in items:
        if isinstance(item, pytest.Function):
            used = (made[-1] for made in item._fixtureinfo.name2fixturedefs.values() if made)
            if any(fixture.scope == "module" for fixture in used):
                item.add_marker(pytest.mark.xdist_group(item.module.__name__))
