"""Check the numbers of the documentation against a fresh run; exit with 1 if any has changed.

    OPENBLAS_NUM_THREADS=1 python docs/check_numbers.py [--data DIR]

Errors and coverages must be what the pages say, up to rounding and the instruction set. Times are those of a machine:
they are printed beside those of the page, and must be of the same order. With --data (see benchmarks/accuracy.py) the
table of real streams is checked too, which takes some minutes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import stats

import onlinegp as ogp

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]

README = HERE.parent / "README.md"
CHOOSING, CALIBRATION = HERE / "guide" / "choosing.md", HERE / "guide" / "calibration.md"
DECIBELS, SHARE, NATS, ORDER = 0.3, 0.02, 0.002, 10.0  # how far a fresh run may be from a page
HALF, BUSY = 0.5, 3.0  # microseconds that the calibration page promises, and a factor for slow and busy machines


def table(page: Path, header: str) -> dict[str, list[str]]:
    """Return the rows of the table whose header begins like this, by their first cell."""
    lines = page.read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(header)) + 2
    rows = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[first] = cells
    return rows


def numbers(cells: list[str]) -> list[float]:
    """Return the numbers of cells, percentages as shares."""
    return [float(cell.rstrip("%")) / (100.0 if cell.endswith("%") else 1.0) for cell in cells]


def compare(name: str, told: list[float], fresh: list[float], allowed: list[float]) -> Iterator[str]:
    """Yield what differs by more than is allowed; an allowance above one is a factor."""
    for page, now, room in zip(told, fresh, allowed, strict=True):
        wrong = not page / room <= now <= page * room if room > 1.0 else abs(page - now) > room + 1e-9
        if wrong:
            yield f"{name}: the page says {page:g}, a fresh run {now:g}"


def readme() -> Iterator[str]:
    """Check the README: the share of new rows in the band of its example, and the microseconds of `Tuned(KRLST())`."""
    text, names = README.read_text("utf-8"), dict[str, Any]()
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), names)  # type: ignore[union-attr]
    rng = np.random.default_rng(1)  # what it has not seen, drawn as its own rows were
    x = rng.uniform(-5, 5, (3000, 1))
    y = 70 + 5 * np.sin(x[:, 0]) + rng.standard_normal(3000)
    lower, upper = names["model"].predict_interval(x, level=0.95)
    told = [float(share) / 100.0 for share in re.findall(r"contains about (\d+)% of new rows", text)]
    yield from compare("README, the band", told, [float(np.mean((lower <= y) & (y <= upper)))], [SHARE])
    if not re.search(r"`Tuned\(KRLST\(\)\)`[^.]* predicts and learns a row in\s+microseconds", text):
        yield "README: it no longer says how long Tuned(KRLST()) takes for a row, which is measured here"
    X = rng.normal(size=(3000, 8))
    model = ogp.Tuned(ogp.KRLST(), rows=500).fit(X[:1500], X[:1500, 0])
    began = process_time()
    for row in X[1500:].tolist():
        model.predict_one(row)
        model.learn_one(row, row[0])
    yield from compare("README, Tuned(KRLST())", [10.0], [1e6 * (process_time() - began) / 1500], [ORDER])


def costs() -> Iterator[str]:
    """Check the table of costs, errors and coverages of the choosing page."""
    import costs as script

    told = table(CHOOSING, "| estimator | centers")
    for line in script.measure("auto"):
        name, _, us, *rest = (cell.strip() for cell in line.strip("| ").split("|"))
        error, inside, _, _, error2, inside2 = rest
        fresh = numbers([us, error, inside, error2, inside2])
        yield from compare(name, numbers(told.pop(name)[1:]), fresh, [ORDER, DECIBELS, SHARE, DECIBELS, SHARE])
    yield from (f"{name}: the page has it, docs/costs.py has not" for name in told)


def calibration() -> Iterator[str]:
    """Check the table of the calibration page: log density that is lost to the true distribution, in nats per row."""
    laws = {
        "normal": stats.norm(),
        "t, 8 degrees": stats.t(8),
        "t, 5 degrees": stats.t(5),
        "t, 3 degrees": stats.t(3),
        "Laplace": stats.laplace(),
    }
    told = table(CALIBRATION, "| noise | nothing")
    for name, law in laws.items():
        y = law.rvs(20_000, random_state=np.random.default_rng(0))
        inside = ogp.LinearRLS(noise=1.0, prior=1e-8)  # which predicts zero, with a variance of one
        models = (inside, ogp.Calibrated(inside), ogp.HeavyTailed(inside))
        fresh = [
            float(np.mean(law.logpdf(y) - ogp.run(model, np.zeros((len(y), 1)), y).log_density)) for model in models
        ]
        yield from compare(name, numbers(told.pop(name)), fresh, [NATS] * 3)
    yield from (f"{name}: the page has it, this script has not" for name in told)


def spreads() -> Iterator[str]:
    """Check the calibration page: what each of its models adds to a run, in microseconds per row."""
    told = re.search(r"All three add less than half a microsecond per row", CALIBRATION.read_text("utf-8"))
    if told is None:
        yield "calibration: it no longer says what the three models add to a row, which is measured here"
    y, inside = np.random.default_rng(0).standard_normal(20_000), ogp.LinearRLS(noise=1.0)
    models = (inside, ogp.Calibrated(inside), ogp.HeavyTailed(inside), ogp.Conformal(inside))
    best = np.full(len(models), np.inf)
    for _ in range(5):
        for i, model in enumerate(models):
            began = process_time()
            ogp.run(model, np.zeros((len(y), 1)), y)
            best[i] = min(best[i], 1e6 * (process_time() - began) / len(y))
    for model, added in zip(models[1:], best[1:] - best[0], strict=True):
        if added > HALF * BUSY:
            yield f"{type(model).__name__}: the page says less than {HALF} us, a fresh run {added:.2f}"


def streams(folder: Path) -> Iterator[str]:
    """Check the table of real streams of the choosing page."""
    import accuracy

    for name, cells in table(CHOOSING, "| stream, model").items():
        stream, model = re.fullmatch(r"(\w+), `(\w+)`", name).groups()  # type: ignore[union-attr]
        build = {
            "Auto": accuracy.auto,
            "KRLST": accuracy.krlst,
            "LocalGP": accuracy.local,
            "ResidualGP": accuracy.residual,
            "LinearRLS": accuracy.linear,
        }
        error, nlpd, inside, _ = accuracy.scored(build[model], *accuracy.standard(folder, stream))
        told = numbers(cells)
        yield from compare(name, told, [error, nlpd, inside], [1.05, 0.05, SHARE])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the data sets of benchmarks/accuracy.py")
    args = parser.parse_args()
    wrong = [*readme(), *calibration(), *spreads(), *costs(), *(streams(args.data) if args.data else ())]
    print("\n".join(wrong) or "The numbers are those of the pages.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
