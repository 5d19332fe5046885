"""A driver to be killed: runs the stream of a folder's files until all are read.

python driver.py FOLDER FILES_PER_BATCH
"""

from __future__ import annotations

import sys
from pathlib import Path

from events import ROLES, finish, model, session, stream

from onlinegp.spark import run_keyed

if __name__ == "__main__":
    folder, files = Path(sys.argv[1]), int(sys.argv[2])
    finish(run_keyed(stream(session(), folder / "in", files), **ROLES, model=model()), folder)
