"""The report of `onlinegp run`: what it holds, and that real browsers draw it, save pictures and heed the keyboard."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from shell import FIXED, inside, rows_of, write_csv

from onlinegp.auto.members import MEMBERS
from onlinegp.streams.running.observers import Rows
from onlinegp.streams.running.predict_then_learn import Predicted
from onlinegp.streams.running.score import Curves
from onlinegp.streams.running.surprises import MOST, Surprises
from onlinegp.streams.writing.report import coverage_curve

PLANTED = 200  # a row whose target is far out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report of Auto, with keys and a surprise, and one of a model without tuning."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, 400)
    y = 5.0 + np.sin(x) + 0.05 * rng.standard_normal(400)
    y[PLANTED - 1] += 3.0
    lines = [f"<b>{i}</b>,{a:.6f},{b:.6f}" for i, (a, b) in enumerate(zip(x, y, strict=True), 1)]
    (folder / "keyed.csv").write_text("\n".join(["name,x,y", *lines]) + "\n")
    places = ["--report", "auto.html", "--out", "auto.csv", "--summary", "auto.json"]
    inside("run", "keyed.csv", "--copy", "name", "--tune", "100", *places, cwd=folder)
    inside(
        "run", "keyed.csv", "--tune", "100", "--flag", "0.001", "--report", "flagged.html", "--out", "f.csv", cwd=folder
    )
    write_csv(folder / "data.csv", 300)
    inside("run", "data.csv", *FIXED, "--report", "fixed.html", "--out", "fixed.csv", cwd=folder)
    y = rng.standard_normal((900, 3))
    y[700:720, 1] += 8.0
    lines = [f"s{k},{y[i, k]:.5f}" for i in range(900) for k in range(3)]
    (folder / "sensors.csv").write_text("\n".join(["sensor,y", *lines]) + "\n")
    (folder / "one.csv").write_text("\n".join(["y", *(f"{value:.5f}" for value in y[:, 1])]) + "\n")
    lags = ["--lags", "2", *FIXED, "--flag", "0.001"]
    inside("run", "sensors.csv", "--by", "sensor", *lags, "--report", "keys.html", "--out", "keys.csv", cwd=folder)
    inside("run", "one.csv", *lags, "--report", "events.html", "--out", "events.csv", cwd=folder)
    return folder


def data_of(path: Path) -> dict:
    return json.loads(path.read_text().split('<script id="data" type="application/json">')[1].split("</script>")[0])


def predicted(y, mean, std=1.0, **more) -> Rows:
    from onlinegp.predictions import Gaussian

    mean = np.asarray(mean, dtype=np.float64)
    return Rows.of(
        np.asarray(y, dtype=np.float64),
        Predicted(Gaussian(mean, np.full(len(mean), std)), np.ones(len(mean)), np.ones(len(mean), dtype=bool)),
        level=0.95,
        **more,
    )


def test_it_holds_all_it_needs(folder):
    page = (folder / "auto.html").read_text()
    for word in ("http:", "https:", "src=", "@DATA@", "@SCRIPT@", "<b>200"):
        assert word not in page
    assert len(page) < 400_000
    data = data_of(folder / "auto.html")
    assert sum(data["pit"]) == data["figures"]["scored"] == 399
    assert len(data["whole"]["row"]) == 400
    assert (data["model"], data["target"]) == ("Auto", "y")


def test_the_most_surprising_row_is_the_planted_one(folder):
    first = data_of(folder / "auto.html")["surprises"][0]
    assert first["row"] == PLANTED
    assert first["keys"] == {"name": f"<b>{PLANTED}</b>"}
    assert abs(first["z"]) > 5
    assert first["tail"] < 1e-5
    assert json.loads((folder / "auto.json").read_text())["surprises"][0]["row"] == PLANTED


@pytest.mark.parametrize("name", ["events", "keys"])
def test_events_have_their_rows_and_reasons(folder, name):
    data = data_of(folder / f"{name}.html")
    (event,) = [event for event in data["events"] if event["start"] == 701 and event.get("key", "s1") == "s1"]
    assert event["reason"].startswith("y ")
    scene = event["scene"]
    assert (scene["row"], len(scene["y"])) == (641, 160)
    own = [float(row["y"]) for row in rows_of(folder / f"{name}.csv") if row.get("sensor", "s1") == "s1"]
    assert scene["y"] == pytest.approx(own[640:800], rel=1e-4)
    assert data.get("by") == ("sensor" if name == "keys" else None)
    assert data["figures"]["events"][event["kind"]] >= 1


def test_members_and_their_weights(folder):
    weights = data_of(folder / "auto.html")["weights"]
    assert set(weights["members"]) == {*MEMBERS, "local-linear"}  # the last one before the first tuning
    assert np.sum(weights["series"], axis=0) == pytest.approx(1.0, abs=1e-4)
    assert weights["row"][0] == 6  # before, rows are predicted by mean and spread
    assert weights["end"][-1] == 400
    assert data_of(folder / "fixed.html")["weights"]["row"] == []
    assert data_of(folder / "flagged.html")["weights"]["series"] == weights["series"]  # a detector changes nothing


def test_each_member_has_a_color_of_its_own():
    folder = Path(str(files("onlinegp.streams.writing.report")))
    shades = re.search(r"shades = (\[.*?\]);", (folder / "page.js").read_text()).group(1)
    light = (folder / "page.css").read_text().partition("@media")[0]
    colors = [re.search(rf"--{name}: (#\w+);", light).group(1) for name in json.loads(shades)]
    assert len(set(colors)) == len(colors) >= len(MEMBERS)


def test_the_baselines_are_those_of_the_output(folder):
    """The slow twin: persistence and the mean from the rows that were written."""
    y, mean = np.array([[float(row[name]) for name in ("y", "mean")] for row in rows_of(folder / "fixed.csv")]).T
    y, mean, before = y[1:], mean[1:], y[:-1]  # nothing was known of the first row
    rms = {"model": y - mean, "persistence": y - before, "mean": y - y.mean()}
    for name, value in data_of(folder / "fixed.html")["baselines"].items():
        assert value == pytest.approx(np.sqrt(np.mean(rms[name] ** 2)), rel=1e-5), name


@pytest.mark.parametrize("horizon", [1, 3])
def test_persistence_is_the_last_target_that_was_known(horizon):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(500)
    y[rng.random(500) < 0.2] = np.nan
    expected = 0.0
    for i in range(500):
        known = [value for value in y[: max(0, i - horizon + 1)] if value == value]
        if known and y[i] == y[i]:
            expected += (y[i] - known[-1]) ** 2
    curves = Curves(horizon)
    for part in np.split(np.arange(500), [1, 2, 60, 61, 333]):
        curves.add(predicted(y[part], np.zeros(len(part))))
        entry, curves = curves.to_json(), Curves(horizon)
        curves.from_json(json.loads(json.dumps(entry, allow_nan=False)))
    assert np.sum(curves["persistence"]) == pytest.approx(expected)


def test_a_prediction_before_anything_was_learned_is_not_drawn(folder):
    data = data_of(folder / "auto.html")
    assert data["whole"]["lower"][0] is data["whole"]["mean_low"][0] is None  # 0 +- 1, and y is 5
    assert data["whole"]["y_low"][0] is not None
    assert data["whole"]["lower"][1] is not None
    rows = predicted([np.nan, 1.0], [2.0, 3.0])
    curves = Curves()
    curves.add(rows)
    assert curves["lower"].tolist() == rows.lower.tolist()  # that of a row without a target is


def test_the_coverage_along_the_stream():
    y = np.zeros(1000)
    y[400:500], y[600:950] = 9.0, np.nan
    curves = Curves()
    for part in np.split(y, [7, 300, 777]):
        curves.add(predicted(part, np.zeros(len(part))))
    found = coverage_curve(curves)
    assert found["row"] == [1, 110, 218, 326, 435, 543]  # 650 rows are scored
    assert found["end"] == [109, 217, 325, 434, 542, 1000]
    assert found["share"] == pytest.approx([1.0, 1.0, 1.0, 75 / 109, 42 / 108, 1.0], abs=1e-5)
    assert coverage_curve(Curves()) == {"row": [], "end": [], "share": []}
    few = Curves()
    few.add(predicted([np.nan, 0.0, 9.0, np.nan], np.zeros(4)))
    assert (few["scored"].sum(), coverage_curve(few)["share"]) == (2.0, [0.5])
    nothing = Curves()
    nothing.add(predicted([np.nan, np.nan], np.zeros(2)))
    assert coverage_curve(nothing)["share"] == []


def test_surprises_are_the_same_in_any_blocks_and_few():
    y = np.random.default_rng(0).standard_normal(1000)
    expected = np.argsort(-np.abs(y), kind="stable")[:MOST] + 1
    for size in (1, 7, 1000):
        surprises = Surprises()
        for i in range(0, 1000, size):
            surprises.add(predicted(y[i : i + size], np.zeros(len(y[i : i + size])), before=i))
        assert [row["row"] for row in surprises.rows] == expected.tolist()
    unscored = Surprises()
    unscored.add(predicted(y, np.zeros(1000), unscored=1000))
    assert [row for row in unscored.rows if row["z"] > 0] == []


def test_a_resumed_run_gives_the_same_report(tmp_path):
    write_csv(tmp_path / "data.csv", 400)
    rows = (tmp_path / "data.csv").read_text().splitlines(keepends=True)
    for name, given in (("whole", [401]), ("parts", [251, 401])):
        for i, n in enumerate(given):
            (tmp_path / "in.csv").write_text("".join(rows[:n]))
            places = ["--out", f"{name}.csv", "--report", f"{name}.html", "--checkpoint", name, "--tune", "60"]
            inside("run", "in.csv", *places, *(["--resume"] if i else []), "--quiet", cwd=tmp_path)
    whole, parts = data_of(tmp_path / "whole.html"), data_of(tmp_path / "parts.html")
    for data in (whole, parts):
        del data["figures"]["rows_per_second"], data["figures"]["tuning_seconds"]
    assert whole == parts


# In browsers

PROBE = """<script>
addEventListener("error", e => parent.postMessage({ error: e.message }, "*"));
addEventListener("load", () => setTimeout(() => {
  const found = { canvases: {}, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth };
  for (const canvas of document.querySelectorAll("canvas")) {
    if (!canvas.clientWidth) continue;
    const box = canvas.getBoundingClientRect(), at = (x, type) => canvas.dispatchEvent(new PointerEvent(type,
      { clientX: box.left + x, clientY: box.top + 40, pointerId: 1, bubbles: true }));
    const key = name => canvas.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
    canvas.setPointerCapture = () => {};
    const chart = charts[canvas.id], told = [];
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, colors = new Set();
    const blue = [0, 114, 178], ends = new Map();  // of the mean, by column of pixels
    for (let i = 0; i < pixels.length; i += 4) {
      const one = pixels.slice(i, i + 3);
      colors.add(one.join());
      if (!blue.every((v, k) => Math.abs(v - one[k]) < 60)) continue;
      const x = i / 4 % canvas.width, y = Math.floor(i / 4 / canvas.width) / canvas.height;
      const have = ends.get(x) || [y, y];
      ends.set(x, [Math.min(have[0], y), Math.max(have[1], y)]);
    }
    if (canvas.id === "band") found.shown = [charts.band.span, document.getElementById("grain").textContent];
    if (canvas.id === "band") found.spreads = [...ends.values()].map(([top, bottom]) => bottom - top);
    at(100, "pointerdown"); at(200, "pointermove"); at(200, "pointerup");
    const dragged = chart.range !== null;
    key("Escape");
    key("ArrowRight"); told.push(document.getElementById("tip").textContent);
    key("ArrowRight"); told.push(document.getElementById("tip").textContent);
    key("+");
    found.canvases[canvas.id] = { colors: colors.size, dragged, told, keyed: chart.range !== null, tab: canvas.tabIndex,
      label: canvas.getAttribute("aria-label"), picture: chart.picture().toDataURL("image/png").slice(0, 30) };
  }
  document.getElementById("show-tail").click();
  const clicked = HTMLAnchorElement.prototype.click;
  HTMLAnchorElement.prototype.click = function () { found.saved = this.download; };
  document.querySelector("button[aria-label^='save picture']").click();
  HTMLAnchorElement.prototype.click = clicked;
  found.tail = document.getElementById("show-tail").getAttribute("aria-pressed");
  found.paper = color("paper");
  found.title = document.getElementById("title").textContent;
  found.surprises = document.querySelectorAll("#surprises tbody tr").length;
  found.first = document.querySelector("#surprises tbody tr")?.textContent;
  found.ready = document.body.dataset.ready;
  parent.postMessage(found, "*");
}, 50));
</script>"""
FRAME = """<!doctype html><body><iframe src="page.html" style="width:{width}px;height:4000px;border:0"></iframe><script>
addEventListener("message", e => {{ document.body.append(Object.assign(document.createElement("pre"),
  {{ id: "found", textContent: JSON.stringify(e.data) }})); }});</script>"""


def browser(*names: str) -> str:
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip(f"{names[0]} is not installed")
    return found


def in_chromium(page: Path, tmp_path: Path, *, width: int, dark: bool) -> dict:
    """Return what the probe found in the page, in a frame of this width."""
    (tmp_path / "page.html").write_text(page.read_text().replace("<head>", "<head>" + PROBE))
    (tmp_path / "frame.html").write_text(FRAME.format(width=width))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path / 'user'}"]
    flags += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--window-size=1500,1500"]
    command = [browser("chromium"), *flags, "--virtual-time-budget=5000", "--dump-dom", f"file://{tmp_path}/frame.html"]
    page_then = subprocess.run(command, capture_output=True, timeout=90).stdout.decode()
    return json.loads(html.unescape(page_then.split('<pre id="found">')[1].split("</pre>")[0]))


@pytest.mark.parametrize(("name", "width", "dark"), [("events", 360, False), ("keys", 800, True), ("keys", 360, False)])
def test_events_in_chromium(folder, tmp_path, name, width, dark):
    found = in_chromium(folder / f"{name}.html", tmp_path, width=width, dark=dark)
    assert found["ready"] == "yes", found
    assert found["wide"] == 0
    along = {"band", "error", "along", "size"} if name == "events" else set()
    assert set(found["canvases"]) == {"event", "pit", "coverage"} | along
    assert found["canvases"]["event"]["colors"] > 4


@pytest.mark.parametrize(("name", "width", "dark"), [("auto", 360, True), ("auto", 800, False), ("fixed", 1400, False)])
def test_in_chromium(folder, tmp_path, name, width, dark):
    found = in_chromium(folder / f"{name}.html", tmp_path, width=width, dark=dark)
    assert found["ready"] == "yes", found
    assert found["wide"] == 0  # nothing sticks out
    assert found["paper"] == ("#1b232b" if dark else "#ffffff")
    charts = {"band", "error", "pit", "coverage", "size"} | ({"weights"} if name == "auto" else set())
    assert set(found["canvases"]) == charts
    for chart, seen in found["canvases"].items():
        assert seen["colors"] > 4, chart
        assert seen["tab"] == 0
        assert seen["picture"] == "data:image/png;base64,iVBORw0K"
        assert seen["told"][0]
        assert seen["told"][0] != seen["told"][1], chart
        assert seen["dragged"] == seen["keyed"] == (chart not in ("pit", "coverage")), chart
    assert found["saved"] == "onlinegp-band.png"
    assert found["tail"] == "true"
    assert found["surprises"] == 10
    if name == "auto":
        assert found["title"] == "Auto: y of keyed.csv"
        assert found["first"].startswith(f"{PLANTED}<b>{PLANTED}</b>")


def test_a_code_does_not_flatten_the_picture(tmp_path):
    y = np.sin(np.arange(2000) / 50.0)
    y[700:703] = -9999.0
    (tmp_path / "codes.csv").write_text("y\n" + "".join(f"{value:.5f}\n" for value in y))
    inside("run", "codes.csv", "--lags", "2", *FIXED, "--report", "page.html", "--out", "o.csv", cwd=tmp_path)
    (low, _), grain = in_chromium(tmp_path / "page.html", tmp_path, width=800, dark=False)["shown"]
    assert -1000.0 < low < -1.0
    assert "zoom in" in grain


def test_a_mean_that_follows_fast_waves_does_not_look_flat(tmp_path):
    """Each column holds several rows; an average of their means would be a flat line."""
    x = np.random.default_rng(0).uniform(-3, 3, 8000)
    rows = "\n".join(f"{a:.6f},{np.sin(2 * a):.6f}" for a in x)
    (tmp_path / "waves.csv").write_text(f"x,y\n{rows}\n")
    inside("run", "waves.csv", *FIXED, "--report", "waves.html", "--out", "waves.out.csv", "--quiet", cwd=tmp_path)
    assert data_of(tmp_path / "waves.html")["width"] > 1
    spreads = in_chromium(tmp_path / "waves.html", tmp_path, width=800, dark=False)["spreads"]
    assert len(spreads) > 600
    assert np.median(spreads) > 0.25


def test_in_firefox(folder, tmp_path):
    """It draws: the colors of mean and data are on a picture of the page."""
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    picture, profile = tmp_path / "page.png", tmp_path / "profile"
    profile.mkdir()
    command = [browser("firefox", "firefox-esr"), "--headless", "--no-remote", "--profile", str(profile)]
    command += ["--window-size=800,2400", "--screenshot", str(picture), f"file://{folder}/auto.html"]
    subprocess.run(command, capture_output=True, timeout=120)
    pixels = (imread(picture)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    for color in ((0, 114, 178), (213, 94, 0)):
        assert (np.abs(pixels - color).max(axis=1) <= 2).sum() > 100
