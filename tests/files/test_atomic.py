"""Files that are there in full or not at all: permissions, links, long names, full disks, folders of others."""

from __future__ import annotations

import os
import stat

import pytest

from onlinegp.files.atomic import check_folder, check_writable, write_atomically
from onlinegp.streams.errors import CheckpointError
from onlinegp.streams.running.checkpoint import Checkpoints


def mode(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o666])
def test_permissions_are_kept(tmp_path, permissions):
    path = tmp_path / "model.ogp"
    path.write_bytes(b"old")
    path.chmod(permissions)
    write_atomically(path, [b"new"])
    assert mode(path) == permissions
    assert path.read_bytes() == b"new"


def test_new_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_atomically(tmp_path / "new", [b""])
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, exists):
    (tmp_path / "disk").mkdir()
    target, link = tmp_path / "disk" / "model.ogp", tmp_path / "model.ogp"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, [b"new"])
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["disk", "model.ogp"]
    assert os.listdir(tmp_path / "disk") == ["model.ogp"]


@pytest.mark.parametrize("name", ["n" * 255, "\u00e4" * 127, "n" * 251 + ".ogp"])
def test_long_names(tmp_path, name):
    write_atomically(tmp_path / name, [b"new"])
    assert os.listdir(tmp_path) == [name]


def test_devices_are_written_to(tmp_path):
    write_atomically(os.devnull, [b"new"])
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_named(tmp_path):
    (tmp_path / "model.ogp").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"cannot write .*model\.ogp: No space left"):
        write_atomically(tmp_path / "model.ogp", [b"new"])


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.ogp"
    path.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write .*No space left"):
        write_atomically(path, [b"new"])
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.ogp"]


def test_what_cannot_be_written_is_refused_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    for path, reason in (("", "it is a folder"), ("none/x", "does not exist"), ("file/x", "is a file")):
        with pytest.raises(OSError, match=reason):
            write_atomically(tmp_path / path, [b"new"])
    with pytest.raises(NotADirectoryError, match="as a folder"):
        check_folder(tmp_path / "file" / "x")
    monkeypatch.setattr(os, "access", lambda path, mode: str(path).endswith("file"))
    check_writable(tmp_path / "file", beside=False)
    for path in ("file", "new"):
        with pytest.raises(PermissionError, match="its folder is read-only"):
            check_writable(tmp_path / path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError, match="it is read-only"):
        check_writable(tmp_path / "file")
    with pytest.raises(PermissionError, match="is read-only"):
        check_folder(tmp_path / "x" / "y")


# The folder of checkpoints


def test_only_files_of_its_own_are_removed(tmp_path):
    mine = ["checkpoint.ogp.0123abcd.part", "checkpoint.ogp.ffffffff.part"]
    others = ["movie.part", "checkpoint.ogp.part", "checkpoint.ogp.0123ABCD.part", "x.ogp.0123abcd.part", "lock"]
    for name in (*mine, *others):
        (tmp_path / name).write_bytes(b"precious")
    (tmp_path / "checkpoint.ogp.00000000.part").symlink_to("movie.part")
    (tmp_path / "checkpoint.ogp.11111111.part").mkdir()
    Checkpoints(tmp_path).close()
    left = {*others, "checkpoint.ogp.00000000.part", "checkpoint.ogp.11111111.part", "checkpoint.lock"}
    assert set(os.listdir(tmp_path)) == left
    assert {(tmp_path / name).read_bytes() for name in others} == {b"precious"}


@pytest.mark.parametrize("name", ["checkpoint.ogp", "checkpoint-previous.ogp", "checkpoint.lock"])
def test_links_and_folders_in_place_of_its_files_are_refused(tmp_path, name):
    (tmp_path / "precious").write_bytes(b"precious")
    folder = tmp_path / "safe"
    folder.mkdir()
    (folder / name).symlink_to("../precious")
    with pytest.raises(CheckpointError, match=f"{name} is not a regular file"):
        Checkpoints(folder)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(CheckpointError, match=f"{name} is not a regular file"):
        Checkpoints(folder)


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="no paths relative to a folder here")
@pytest.mark.parametrize("name", ["checkpoint.ogp", "checkpoint-previous.ogp", "safe"])
def test_links_that_appear_later_are_not_followed(tmp_path, name):
    """A link in the place of a file, or of the folder itself, between two checkpoints."""
    (tmp_path / "elsewhere").mkdir()
    for precious in ("precious", "elsewhere/checkpoint.ogp", "elsewhere/checkpoint-previous.ogp"):
        (tmp_path / precious).write_bytes(b"precious")
    folder = tmp_path / "safe"
    checkpoints = Checkpoints(folder)
    checkpoints.write(b"one")
    if name == "safe":
        folder.rename(tmp_path / "moved")
        folder.symlink_to("elsewhere")
        folder = tmp_path / "moved"
    else:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("../precious")
    checkpoints.write(b"two")
    checkpoints.write(b"three")
    checkpoints.close()
    for precious in ("precious", "elsewhere/checkpoint.ogp", "elsewhere/checkpoint-previous.ogp"):
        assert (tmp_path / precious).read_bytes() == b"precious"
    assert (folder / "checkpoint.ogp").read_bytes() == b"three"
    assert (folder / "checkpoint-previous.ogp").read_bytes() == b"two"
    assert not (folder / "checkpoint-previous.ogp").is_symlink()


def test_a_lock_of_another_program_is_refused(tmp_path):
    (tmp_path / "checkpoint.lock").write_bytes(b"4711")
    with pytest.raises(CheckpointError, match="has 4 bytes"):
        Checkpoints(tmp_path)
    assert (tmp_path / "checkpoint.lock").read_bytes() == b"4711"


def test_the_folder_may_be_a_link_but_not_a_file(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "safe").symlink_to("disk")
    checkpoints = Checkpoints(tmp_path / "safe")
    checkpoints.write(b"one")
    checkpoints.write(b"two")
    checkpoints.close()
    assert (tmp_path / "disk" / "checkpoint-previous.ogp").read_bytes() == b"one"
    with pytest.raises(NotADirectoryError, match="as a folder"):
        Checkpoints(tmp_path / "disk" / "checkpoint.ogp")
