"""`onlinegp forecast FILE` with nothing else: dates, steps, gaps, keys, backtests and pictures."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from shell import inside, rows_of

import onlinegp as ogp

RNG = np.random.default_rng(0)
MONTHS = 10 + 0.1 * np.arange(96) + 3 * np.sin(2 * np.pi * np.arange(96) / 12) + RNG.normal(size=96)


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


@pytest.fixture
def folder(tmp_path):
    write(
        tmp_path / "months.csv",
        "month,sales",
        [(f"{2010 + i // 12}-{i % 12 + 1:02d}", v) for i, v in enumerate(MONTHS)],
    )
    return tmp_path


def test_a_file_and_nothing_else(folder):
    done = inside("forecast", "months.csv", cwd=folder)
    rows = rows_of(done.stdout)
    assert [rows[0]["date"], rows[11]["date"], len(rows)] == ["2018-01", "2018-12", 18]
    ahead = ogp.Forecaster().fit(MONTHS).forecast(18)
    np.testing.assert_allclose([float(row["mean"]) for row in rows], ahead.mean, rtol=1e-6)
    np.testing.assert_allclose([float(row["upper"]) for row in rows], ahead.interval(0.95)[1], rtol=1e-6)
    predicted = done.stderr.decode()
    assert "96 rows, a row each month from 2010-01 to 2017-12; season of 12 rows" in predicted


def test_pictures_and_backtests(folder):
    done = inside("forecast", "months.csv", "--steps", 6, "--backtest", 3, "--plot", "p.png", cwd=folder)
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "in 95% interval" in done.stderr.decode()


def test_a_report_shows_series_forecast_and_backtest(folder):
    done = inside("forecast", "months.csv", "--steps", 6, "--backtest", 3, "--report", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert "report: page.html" in done.stderr.decode()
    assert "season of 12 rows" in page
    assert page.count("<td>2018-0") == 6
    past, ahead = (
        page.split(f'<polyline class="{name}" points="')[1].split('"')[0].split() for name in ("past", "ahead")
    )
    assert [len(past), len(ahead), page.count("<polygon")] == [40, 6, 2]
    assert "in 95% interval" in page
    assert "http" not in page
    assert inside(
        "forecast", "months.csv", "--lags", 3, "--steps", 2, "--report", "p.html", cwd=folder, code=None
    ).returncode


def test_a_clock_change_is_recognized(folder):
    berlin, start = ZoneInfo("Europe/Berlin"), datetime(2026, 3, 20, tzinfo=UTC)
    for month, what in ((3, "1 row missing before"), (10, "1 row at the time of another")):
        local = [(start.replace(month=month) + timedelta(hours=i)).astimezone(berlin) for i in range(300)]
        write(folder / "local.csv", "time,load", [(f"{at:%Y-%m-%d %H:%M}", 50 + i % 24) for i, at in enumerate(local)])
        told = inside("forecast", "local.csv", "--steps", 2, cwd=folder).stderr.decode()
        assert what in told
        assert "daylight saving, name the time zone, such as --timezone Europe/Berlin" in told
        told = inside("forecast", "local.csv", "--steps", 2, "--timezone", "Europe/Berlin", cwd=folder).stderr.decode()
        assert "daylight" not in told
        assert what not in told
    gap = [(f"2026-03-{1 + i // 24:02} {i % 24:02}:00", i % 24) for i in range(480) if i != 250]
    write(folder / "gap.csv", "time,load", gap)
    told = inside("forecast", "gap.csv", "--steps", 2, cwd=folder).stderr.decode()
    assert "1 row missing before" in told
    assert "daylight" not in told


def test_the_labels_of_a_report_are_short_and_round(folder):
    rows = [(f"2026-01-{1 + i // 24:02}T{i % 24:02}:00:00+01:00", 512.3 + i % 24) for i in range(240)]
    write(folder / "hours.csv", "time,load", rows)
    inside("forecast", "hours.csv", "--steps", 12, "--report", "page.html", cwd=folder)
    picture = (folder / "page.html").read_text().split("<svg")[1].split("</svg>")[0]
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert "2026-01-11 11:00" in labels
    assert max(map(len, labels)) == 16  # so that they do not overlap
    assert {"515", "520", "525", "530", "535"} <= set(labels)


def test_a_report_of_many_series_has_a_section_for_each(folder):
    rows = [(key, f"{2010 + i // 12}-{i % 12 + 1:02d}", v) for key in ("<a>", "b") for i, v in enumerate(MONTHS[:30])]
    write(folder / "two.csv", "shop,month,sales", rows)
    inside("forecast", "two.csv", "--by", "shop", "--steps", 2, "--report", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "&lt;a&gt;" in page
    assert "<a>" not in page


def test_codes_for_missing_values_are_reported(folder):
    values = [-999 if i % 20 == 7 else f"{v:.1f}" for i, v in enumerate(MONTHS)]
    write(folder / "codes.csv", "day,temp", [(date(2026, 1, 1) + timedelta(i), v) for i, v in enumerate(values)])
    told = inside("forecast", "codes.csv", "--steps", 2, cwd=folder).stderr.decode()
    assert "the column 'temp' holds -999, far from its other values" in told
    told = inside("forecast", "codes.csv", "--steps", 2, "--na-values", "-999", cwd=folder).stderr.decode()
    assert "holds -999" not in told
    assert "96 rows, of which 5 are missing" in told


def test_a_lost_row_is_no_daylight_saving(folder):
    times = [datetime(2026, 3, 28) + timedelta(minutes=10 * i) for i in range(288)]
    del times[24 * 6 + 13]  # Sunday, 02:10
    write(folder / "lost.csv", "time,temp", [(t.isoformat(), i % 7) for i, t in enumerate(times)])
    told = inside("forecast", "lost.csv", "--steps", 2, cwd=folder).stderr.decode()
    assert "1 row missing before line 159" in told
    assert "daylight" not in told


def test_rows_of_a_wrong_clock_are_named(folder):
    begin = datetime(2026, 3, 1)
    times = [begin + timedelta(minutes=10 * i) for i in range(96)]
    times[40:43] = [datetime(1970, 1, 1) + timedelta(minutes=10 * i) for i in range(3)]  # a reboot
    write(folder / "reboot.csv", "time,temp", zip((t.isoformat() for t in times), MONTHS, strict=True))
    refused = inside("forecast", "reboot.csv", "--steps", 2, cwd=folder, code=3).stderr.decode()
    assert "correct or remove its rows, such as line 42. Otherwise use --gaps ignore" in refused


def test_gaps_duplicates_and_disorder_are_told_with_their_lines(folder):
    lines = (folder / "months.csv").read_text().splitlines()
    lines[4:6] = []  # two months are missing before line 5
    lines.insert(9, lines[8])  # line 10 is twice there
    (folder / "odd.csv").write_text("\n".join(lines) + "\n")
    predicted = inside("forecast", "odd.csv", "--steps", 2, cwd=folder).stderr.decode()
    assert "2 rows missing before line 5" in predicted
    assert "1 row at the time of another row: line 10" in predicted
    assert "If the file holds several series, name their column with --by." in predicted
    assert "of which 2 are missing" in predicted
    refused = inside("forecast", "odd.csv", "--gaps", "refuse", cwd=folder, code=None)
    assert refused.returncode == 3
    ignored = inside("forecast", "odd.csv", "--steps", 2, "--gaps", "ignore", cwd=folder)
    assert "94 rows, a row each month" in ignored.stderr.decode()


def test_rows_in_any_order_are_the_series(folder):
    lines = (folder / "months.csv").read_text().splitlines()
    mixed = [lines[0], *(lines[1 + i] for i in RNG.permutation(len(lines) - 1))]
    (folder / "mixed.csv").write_text("\n".join(mixed) + "\n")
    done, mixed_done = (inside("forecast", f"{name}.csv", "--steps", 2, cwd=folder) for name in ("months", "mixed"))
    assert done.stdout == mixed_done.stdout
    assert "rows out of order: line" in mixed_done.stderr.decode()
    assert "missing" not in mixed_done.stderr.decode()


def test_irregular_times_are_averaged_on_a_grid(folder):
    minutes = np.sort(np.random.default_rng(1).uniform(0, 60 * 24 * 12, 250))
    rows = [(datetime(2024, 5, 1) + timedelta(minutes=m), np.sin(2 * np.pi * m / 1440)) for m in minutes]
    write(folder / "irregular.csv", "read at,level", rows)
    done = inside("forecast", "irregular.csv", "--steps", 24, cwd=folder)
    told = done.stderr.decode()
    assert "no common step" in told
    assert "a row each hour" in told
    assert "season of 24 rows" in told
    ahead = rows_of(done.stdout)
    truth = [np.sin(2 * np.pi * datetime.fromisoformat(row["date"]).hour / 24) for row in ahead]
    assert np.abs(np.array([float(row["mean"]) for row in ahead]) - truth).max() < 0.3
    refused = inside("forecast", "irregular.csv", "--gaps", "refuse", cwd=folder, code=None)
    assert refused.returncode == 3
    ignored = rows_of(inside("forecast", "irregular.csv", "--gaps", "ignore", "--steps", 2, cwd=folder).stdout)
    assert "date" not in ignored[0]


def test_a_series_of_two_values(folder):
    write(folder / "two.csv", "year,sales", [("2020", 3), ("2021", 4)])
    done = inside("forecast", "two.csv", "--steps", 1, cwd=folder)
    assert rows_of(done.stdout)[0]["date"] == "2022"
    assert "with fewer than 8 values" in done.stderr.decode()


def test_a_forecast_for_each_key(folder):
    rows = [
        (shop, date(2023, 1, 1) + timedelta(days=i), 20 + 5 * (i % 7 == 0) + RNG.normal())
        for shop in ("north", "south")
        for i in range(60)
    ]
    write(folder / "shops.csv", "shop,day,sales", rows)
    done = rows_of(inside("forecast", "shops.csv", "--by", "shop", "--steps", 3, "--jobs", 1, cwd=folder).stdout)
    assert [row["shop"] for row in done] == ["north"] * 3 + ["south"] * 3
    assert done[0]["date"] == "2023-03-02"


def test_short_series_among_long_ones_have_dates_but_no_backtest(folder):
    rows = [("long", f"2020-{i + 1:02d}-28", v) for i, v in enumerate(MONTHS[:12])]
    rows += [("long", f"2021-{i + 1:02d}-28", v) for i, v in enumerate(MONTHS[12:24])]
    write(folder / "shops.csv", "shop,month,sales", [*rows, ("new", "2021-12-28", 3.0)])
    done = inside("forecast", "shops.csv", "--by", "shop", "--steps", 2, "--backtest", 2, "--jobs", 1, cwd=folder)
    dates = [(row["shop"], row["date"]) for row in rows_of(done.stdout)]
    assert dates == [(shop, f"2022-0{i}-28") for shop in ("long", "new") for i in (1, 2)]
    said = done.stderr.decode()
    assert "in 95% interval" in said
    assert "not tested: a backtest of 2 forecasts of 2 steps needs 16 rows" in said


def test_hours_of_a_clock_that_changes(folder):
    start = datetime(2024, 3, 1, tzinfo=UTC)
    from zoneinfo import ZoneInfo

    local = [(start + timedelta(hours=i)).astimezone(ZoneInfo("Europe/Berlin")) for i in range(24 * 30)]
    rows = [(f"{t:%Y-%m-%d %H:%M}", 5 + np.sin(2 * np.pi * t.hour / 24) + 0.1 * RNG.normal()) for t in local]
    kept = [row for i, row in enumerate(rows) if RNG.random() > 0.3 or i in (0, len(rows) - 1)]
    write(folder / "hours.csv", "time,load", kept)
    done = rows_of(inside("forecast", "hours.csv", "--timezone", "Europe/Berlin", cwd=folder).stdout)
    assert len(done) == 48
    following = [row["date"] for row in done]
    assert following[0] == "2024-03-31T01:00:00+01:00"
    assert following[1] == "2024-03-31T03:00:00+02:00"


def test_25_values_without_a_header(folder):
    (folder / "short.txt").write_text("".join(f"{v}\n" for v in MONTHS[:25]))
    rows = rows_of(inside("forecast", "short.txt", "--steps", 4, "--seasons", "0", cwd=folder).stdout)
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"]
    assert "date" not in rows[0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--timezone", "Mars"), "--timezone must be"),
        (("--seasons", "week"), "--seasons must be"),
        (("--by", "shop"), "no column 'shop'"),
        (("--lags", "3", "--backtest", "2", "--steps", "3"), "--backtest cannot be used with --lags"),
        (("--lags", "3"), "--steps H, the number of rows to predict, is required"),
        (("--steps", "0"), "--steps must be"),
    ],
)
def test_what_cannot_be_done_is_refused(folder, options, reason):
    refused = inside("forecast", "months.csv", *options, cwd=folder, code=None)
    assert refused.returncode == 1
    assert reason in refused.stderr.decode()


def test_a_bad_date_is_named_with_its_line(folder):
    text = (folder / "months.csv").read_text().replace("2011-05", "May the fourth")
    (folder / "bad.csv").write_text(text)
    refused = inside("forecast", "bad.csv", "--time", "month", cwd=folder, code=None)
    assert refused.returncode == 3
    assert "line 18" in refused.stderr.decode()


def test_inputs_that_are_known_ahead(folder):
    rng = np.random.default_rng(2)
    holiday = (rng.random(100) < 0.2).astype(int)
    visits = 100 + 25 * holiday + rng.normal(size=100)
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(103)]
    write(folder / "visits.csv", "day,holiday,visits", zip(days, holiday, visits, strict=False))
    write(folder / "next.csv", "day,holiday", zip(days[100:], (0, 1, 0), strict=True))
    options = ("forecast", "visits.csv", "--features", "holiday")
    done = rows_of(inside(*options, "--future", "next.csv", cwd=folder).stdout)
    assert [row["date"] for row in done] == ["2024-04-10", "2024-04-11", "2024-04-12"]
    means = [float(row["mean"]) for row in done]
    np.testing.assert_allclose(means, [100, 125, 100], atol=4)
    model = ogp.Forecaster().fit(holiday[:, None], visits)
    np.testing.assert_allclose(means, model.forecast(3, [[0.0], [1.0], [0.0]]).mean, rtol=1e-6)
    refused = inside(*options, cwd=folder, code=None)
    assert refused.returncode == 1
    assert "--future FILE" in refused.stderr.decode()


@pytest.fixture
def shops(tmp_path):
    """Two shops with the holidays of 100 past and 3 next days; the second shop is closed on Sundays."""
    rng = np.random.default_rng(3)
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(103)]
    rows = [
        (shop, day, int(rng.random() < 0.2)) for shop in ("1", "2") for day in days if shop == "1" or day.weekday() != 6
    ]
    known = [(*row, f"{100 * int(row[0]) + 25 * row[2] + rng.normal():.3f}") for row in rows if row[1] < days[100]]
    write(tmp_path / "shops.csv", "shop,day,holiday,visits", known)
    write(tmp_path / "calendar.csv", "day,shop,holiday", [(day, shop, h) for shop, day, h in rows[::-1]])
    write(tmp_path / "next.csv", "shop,holiday", [(s, h) for s, d, h in rows if d >= days[100]])
    return tmp_path


def test_inputs_of_several_series_are_found_by_key_and_date(shops):
    options = ("forecast", "shops.csv", "--features", "holiday", "--by", "shop", "--steps", 3, "--target", "visits")
    done = rows_of(inside(*options, "--future", "calendar.csv", cwd=shops).stdout)
    assert [(row["shop"], row["date"]) for row in done] == [
        (shop, f"2024-04-{day}") for shop in "12" for day in (10, 11, 12)
    ]
    table = rows_of((shops / "calendar.csv").read_bytes())
    holidays = {(row["shop"], row["day"]): float(row["holiday"]) for row in table}
    means = [100 * int(row["shop"]) + 25 * holidays[row["shop"], row["date"]] for row in done]
    np.testing.assert_allclose([float(row["mean"]) for row in done], means, atol=4)
    in_order = rows_of(inside(*options, "--future", "next.csv", cwd=shops).stdout)
    assert [row["mean"] for row in in_order] == [row["mean"] for row in done]


def test_next_inputs_that_are_missing_are_named(shops):
    options = ("forecast", "shops.csv", "--features", "holiday", "--by", "shop")
    for more, reason in (
        (("--future", "calendar.csv", "--steps", 4), "calendar.csv: shop 1: there is no row for 2024-04-13."),
        (("--future", "shops.csv"), "shops.csv: shop 1: no row is after 2024-04-09"),
        (("--future", "next.csv", "--steps", 4), "next.csv: shop 1: there are 3 next rows, but --steps is 4."),
    ):
        refused = inside(*options, *more, cwd=shops, code=None)
        assert refused.returncode == 3
        assert reason in refused.stderr.decode()
    write(shops / "unnamed.csv", "day,holiday", [("2024-04-10", 1)])
    refused = inside(*options, "--future", "unnamed.csv", cwd=shops, code=None)
    assert "the model needs the column 'shop'" in refused.stderr.decode()


def test_ignored_gaps_are_ignored_in_the_next_rows(shops):
    text = (shops / "calendar.csv").read_text().splitlines()
    days = [line for line in text if not line.startswith("2024-04-11")]
    (shops / "calendar.csv").write_text("\n".join(days) + "\n")
    options = ("--features", "holiday", "--by", "shop", "--future", "calendar.csv")
    done = rows_of(inside("forecast", "shops.csv", *options, "--gaps", "ignore", cwd=shops).stdout)
    assert [row["step"] for row in done] == ["1", "2", "1", "2"]
    refused = inside("forecast", "shops.csv", *options, cwd=shops, code=None)
    assert "shop 1: there is no row for 2024-04-11" in refused.stderr.decode()


def test_a_series_that_is_too_short_for_a_backtest_does_not_stop_the_others(folder):
    rows = [("long", v) for v in MONTHS] + [("short", v) for v in MONTHS[:20]]
    write(folder / "two.csv", "shop,sales", rows)
    done = inside("forecast", "two.csv", "--by", "shop", "--steps", 6, "--backtest", 3, "--out", "o.csv", cwd=folder)
    told = done.stderr.decode()
    assert told.count("in 95% interval") == 1
    assert "not tested: a backtest of 3 forecasts of 6 steps needs 30 rows, got 20" in told
    assert len(rows_of((folder / "o.csv").read_bytes())) == 12


def test_a_picture_shows_at_most_twelve_past_values_per_step(folder):
    t, days = np.arange(1095), [date(2021, 1, 1) + timedelta(days=i) for i in range(1095)]
    sales = 10 + 3 * np.sin(2 * np.pi * t / 7) + 3 * np.sin(2 * np.pi * t / 365.25) + 0.3 * RNG.normal(size=1095)
    write(folder / "days.csv", "day,sales", zip(days, sales, strict=True))
    done = inside("forecast", "days.csv", "--steps", 14, "--report", "page.html", cwd=folder)
    assert "season of 7 and 364 rows" in done.stderr.decode()
    page = (folder / "page.html").read_text()
    assert len(page.split('<polyline class="past" points="')[1].split('"')[0].split()) == 12 * 14
