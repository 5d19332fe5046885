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
