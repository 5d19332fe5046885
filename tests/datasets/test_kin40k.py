"""The reader of KIN40K against right and wrong files; the real one is used where it is at hand."""

import gzip

import numpy as np
import pytest

from onlinegp.datasets import kin40k


@pytest.fixture(scope="module")
def real(data):
    X, y = kin40k(data / "kin40k.csv.gz")
    return np.column_stack([X, y])


def write_folder(folder, data, fmt="%16.7e"):
    folder.mkdir(exist_ok=True)
    for half, rows in (("train", data[:10_000]), ("test", data[10_000:])):
        np.savetxt(folder / f"kin40k_{half}_data.asc", rows[:, :8], fmt=fmt)
        np.savetxt(folder / f"kin40k_{half}_labels.asc", rows[:, 8], fmt=fmt)
    return folder


def test_kin40k_is_read(real):
    assert real.shape == (40_000, 9)
    assert real.dtype == np.float64
    # the distribution standardizes the training rows, with n - 1 in the variance
    np.testing.assert_allclose(real[:10_000].std(axis=0, ddof=1), 1.0, atol=1e-6)
    assert abs(real[:10_000, 8].mean()) < 1e-6


def test_kin40k_folder_and_file_agree_bit_for_bit(real, tmp_path):
    X, y = kin40k(write_folder(tmp_path / "asc", real))
    np.testing.assert_array_equal(np.column_stack([X, y]), real)


def test_kin40k_csv_needs_no_header_and_survives_six_digits(real, tmp_path):
    np.savetxt(tmp_path / "plain.csv", real, fmt="%.6g", delimiter=",")
    X, _ = kin40k(str(tmp_path / "plain.csv"))
    np.testing.assert_allclose(X, real[:, :8], atol=1e-5)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d, rng: np.where(np.arange(9) == 4, d[:, [5]], d),
        lambda d, rng: d[:, [1, 0, *range(2, 9)]],
        lambda d, rng: rng.permutation(d),
        lambda d, rng: d / d.std(axis=0),
        lambda d, rng: d + np.where(np.arange(len(d)) == 123, 0.01, 0.0)[:, None],
        lambda d, rng: np.where(d == d[5, 3], np.nan, d),
    ],
    ids=["copied column", "swapped columns", "shuffled", "rescaled", "one row off", "NaN"],
)
def test_kin40k_checksum_finds_what_was_changed(real, tmp_path, spoil):
    from onlinegp.datasets.kin40k_file import _check_sums

    _check_sums(tmp_path, real)
    with pytest.raises(ValueError, match="other values: the checksum differs"):
        _check_sums(tmp_path, spoil(real, np.random.default_rng(0)))


def test_kin40k_that_is_not_there_says_where_to_get_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.csv.*github.com/trungngv/fgp.*robot_arm"):
        kin40k(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match=r"has no kin40k_train_data.asc, .*kin40k_test_labels.asc"):
        kin40k(tmp_path)


def test_kin40k_of_the_wrong_shape_is_refused(tmp_path):
    file = tmp_path / "small.csv.gz"
    with gzip.open(file, "wt") as out:
        out.write("x1,x2,y\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match="40000 rows and 9 columns, got 2 and 3: it is not KIN40K"):
        kin40k(file)
    folder = write_folder(tmp_path / "asc", np.zeros((10_010, 9)), fmt="%g")
    with pytest.raises(ValueError, match=r"kin40k_test_data.asc' must have 30000 rows and 8 columns, got 10 and 8"):
        kin40k(folder)


def test_kin40k_of_the_right_shape_but_other_values_is_refused(tmp_path):
    np.savetxt(tmp_path / "zeros.csv", np.zeros((40_000, 9)), fmt="%g", delimiter=",")
    with pytest.raises(ValueError, match="has the shape of KIN40K but other values"):
        kin40k(tmp_path / "zeros.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("words.csv", b"x,y\n1,apple\n"),
        ("ragged.csv", b"1,2,3\n4,5\n"),
        ("binary.csv", bytes(range(256))),
        ("not_really.csv.gz", b"1,2,3\n"),
        ("cut_short.csv.gz", gzip.compress(b"1,2,3\n" * 100, mtime=0)[:-10]),
    ],
)
def test_kin40k_that_is_not_numbers_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}.*must hold rows of numbers"):
        kin40k(tmp_path / name)
