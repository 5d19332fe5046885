"""A store has one owner: a second writer is refused, and no commit is overwritten; readers are let in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.files.container import ModelFileError
from onlinegp.fleet.owner_lock import OwnerLock
from onlinegp.fleet.sqlite import stored_facts, stored_one

MODEL = ogp.KLMS()
ONE = np.zeros((1, 1))

WRITER = """
import sys, time
import numpy as np
import onlinegp as ogp

path, key, commits, turn = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
done = refused = 0
while done < commits:
    try:
        fleet = ogp.Fleet(ogp.KLMS(), store=path, keep=1)
    except OSError as error:
        assert "another process" in str(error), error
        refused += 1
        time.sleep(0.001)
        continue
    seen = fleet.beside or 0
    fleet.keep_beside(lambda: seen)
    for _ in range(min(turn, commits - done)):
        fleet.learn(["both", key], np.zeros((2, 1)), [1.0, 1.0])
        seen += 1
        fleet.commit()
        done += 1
    fleet.close()
    time.sleep(0.001)
print(refused)
"""


def two_writers(path: Path, commits: int, turn: int) -> int:
    """Let two processes make so many commits each, some at a time; return how often one was refused."""
    command = [sys.executable, "-c", WRITER, path]
    both = [
        subprocess.Popen([*command, key, str(commits), str(turn)], stdin=-1, stdout=-1, text=True) for key in ("a", "b")
    ]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("\n")
        one.stdin.flush()
    predicted = [one.communicate()[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    with ogp.Fleet.load(path) as fleet:
        assert fleet.beside == 2 * commits
        assert {key: fleet[key].n_samples_seen_ for key in sorted(fleet)} == {
            "a": commits,
            "b": commits,
            "both": 2 * commits,
        }
    return sum(map(int, predicted))


def test_no_commit_of_two_writers_is_lost(tmp_path):
    two_writers(tmp_path / "fleet.db", 40, 4)


@pytest.mark.attack
def test_ten_thousand_commits_of_two_writers(tmp_path):
    refused = two_writers(tmp_path / "fleet.db", 5000, 20)
    print(f"\ntwo writers: 10,000 commits, none lost, {refused} times one was refused", file=sys.stderr)
    assert refused > 100


HOLDER = """
import sys
import numpy as np
import onlinegp as ogp
fleet = ogp.Fleet(ogp.KLMS(), store=sys.argv[1])
fleet.learn(["a"], np.zeros((1, 1)), [1.0]).commit()
fleet.learn(["a", "new"], np.zeros((2, 1)), [1.0, 1.0])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """A store that another process has open."""
    path = tmp_path / "fleet.db"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=-1, stdout=-1, text=True)
    assert process.stdout.readline() == "ready\n"
    yield path, process
    process.kill()
    process.communicate()


def test_a_second_writer_is_refused_for_as_long_as_the_first_is_there(held):
    path, process = held
    for use in (ogp.Fleet.load, lambda path: ogp.Fleet(MODEL, store=path)):
        with pytest.raises(OSError, match=r"fleet\.db is open for writing in another process.* Close it there"):
            use(path)
    with pytest.raises(OSError, match="open for writing"):
        ogp.Fleet(MODEL, store=path.with_name("link.db") if _link(path) else path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with ogp.Fleet.load(path) as fleet:
        assert list(fleet) == ["a"]


def _link(path: Path) -> bool:
    """Make another name for a file, where there can be one, and return whether it is there."""
    try:
        path.with_name("link.db").symlink_to(path)
    except OSError:
        return False
    return True


def test_others_may_read_what_was_committed(held):
    path, _ = held
    assert stored_facts(path) == {"models": 1, "type of keys": "strings", "first keys": ["a"]}
    assert stored_one(path, "a")[0].n_samples_seen_ == 1
    command = [sys.executable, "-m", "onlinegp", "inspect", path, "--json"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["models"] == 1


def test_one_process_cannot_open_it_twice(tmp_path):
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(["a"], ONE, [1.0]).commit()
        with pytest.raises(OSError, match="elsewhere in this process"):
            ogp.Fleet.load(path)
        fleet.learn(["a"], ONE, [1.0])
    with ogp.Fleet.load(path) as again:
        assert again["a"].n_samples_seen_ == 2
    assert list(tmp_path.iterdir()) == [path]  # neither lock nor log stays


def test_nobody_gets_in_between_two_transactions(tmp_path):
    """After COMMIT and before the next BEGIN nothing is locked in SQLite: who wrote then was overwritten."""
    path, got_in = tmp_path / "fleet.db", []

    def other(statement: str) -> None:
        if not statement.startswith("BEGIN"):
            return
        try:
            with ogp.Fleet.load(path) as second:
                second.learn(["a"], ONE, [1.0])
            got_in.append(True)
        except OSError:
            got_in.append(False)

    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(["a"], ONE, [1.0]).commit()
        fleet._home.store._db.set_trace_callback(other)
        fleet.learn(["a"], ONE, [1.0]).commit()
        fleet._home.store._db.set_trace_callback(None)
        fleet.learn(["a"], ONE, [1.0])
    assert len(got_in) == 1
    with ogp.Fleet.load(path) as again:
        assert again["a"].n_samples_seen_ == 3 + sum(got_in)


def test_what_was_never_committed_leaves_no_file(tmp_path):
    fleet = ogp.Fleet(MODEL, store=tmp_path / "fleet.db").learn(["a"], ONE, [1.0])
    with pytest.raises(ModelFileError, match="it has no commit yet"):
        stored_facts(tmp_path / "fleet.db")
    fleet.close()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    ogp.Fleet(MODEL, store=tmp_path / "empty.db").close()
    assert list(tmp_path.iterdir()) == [tmp_path / "empty.db"]  # which was there before


def test_a_lock_of_another_program_is_left_alone(tmp_path):
    (tmp_path / "fleet.db.lock").write_text("mine")
    with pytest.raises(OSError, match=r"fleet\.db\.lock has 4 bytes, but a lock file is empty"):
        ogp.Fleet(MODEL, store=tmp_path / "fleet.db")
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.db.lock"]


def test_a_lock_that_is_removed_while_it_is_taken(tmp_path, monkeypatch):
    """Its owner removes it when it lets go: what was locked then has no name, and a third could lock the next one."""
    import onlinegp.fleet.owner_lock as owner

    lock, path, times = owner._lock, tmp_path / "fleet.db", []

    def late(handle: int) -> None:
        lock(handle)
        times.append(handle)
        if len(times) == 1:
            path.with_name("fleet.db.lock").unlink()

    monkeypatch.setattr(owner, "_lock", late)
    first = OwnerLock(path)
    assert len(times) == 2
    with pytest.raises(OSError, match="open for writing"):
        OwnerLock(path)
    first.release()
    OwnerLock(path).release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_cannot_write(tmp_path):
    with ogp.Fleet(MODEL, store=tmp_path / "fleet.db") as fleet:
        fleet.learn(["a"], ONE, [1.0]).commit()
        child = os.fork()
        if child == 0:
            try:
                fleet.learn(["b"], ONE, [1.0]).commit()
                os._exit(1)
            except ValueError as error:
                os._exit(0 if "before this process was forked" in str(error) else 2)
        assert os.waitpid(child, 0)[1] == 0
        fleet.learn(["a"], ONE, [1.0])
    with ogp.Fleet.load(tmp_path / "fleet.db") as again:
        assert {key: again[key].n_samples_seen_ for key in again} == {"a": 2}
