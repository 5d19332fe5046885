"""Fleets of many sizes, and calls that run out of memory: nothing aborts, and what was learned is known exactly."""

import sys

import pytest
from processes import report, run_script

from onlinegp.engine import available

pytestmark = [
    pytest.mark.skipif(not available(), reason="the compiled engine was not built"),
    pytest.mark.skipif(sys.platform != "linux", reason="limits and reads its memory as Linux does"),
]


def test_members_of_any_number_of_sizes(tmp_path):
    run_script(
        f"""
        X, y = stream(3000)
        fleet = ogp.Fleet(ogp.KLMS(RBF(0.7)), threads=2)
        alone = {{}}
        for i in range(300):
            alone[i] = ogp.KLMS(RBF(0.7)).fit(X[: 8 * i + 1], y[: 8 * i + 1])
            fleet[i] = alone[i]
        fleet.save("{tmp_path}/fleet.ogp")
        again = ogp.Fleet.load("{tmp_path}/fleet.ogp", threads=2)
        keys = np.repeat(np.arange(300), 40)  # enough that all of them need more room
        X, y = stream(len(keys), seed=1)
        for one in (fleet, again):
            one.learn(keys, X, y)
            for i in range(0, 300, 7):
                same(one[i], alone[i].partial_fit(X[keys == i], y[keys == i]) if one is fleet else alone[i])
        """
    )


def test_many_sizes_take_no_more_memory_than_they_need():
    run_script(
        """
        X, y = stream(1700, d=8)
        fleet = ogp.Fleet(ogp.KLMS(RBF(0.7)), threads=1)
        fleet.learn(["first"], X[:1], y[:1])
        before, needed = virtual_memory(), 0
        for i in range(200):
            n = 8 * i + 1
            fleet[i] = ogp.KLMS(RBF(0.7)).fit(X[:n], y[:n])
            needed += (8 * i + 16) * (8 + 1 + 1 + 1) * 8  # centers, weights, norms, times
        used = virtual_memory() - before
        assert used < 1.5 * needed + 16 * 2**20, (used, needed)  # the newest slab, and Python's own
        """
    )


def test_a_fleet_without_memory_says_what_it_has_learned():
    run_script(
        """
        X, y = stream(60_000)
        keys = np.random.default_rng(1).integers(0, 50, len(X))
        fleet = ogp.Fleet(ogp.OnlineGP(RBF(0.5), noise=0.1), threads=2)
        fleet.learn(keys[:5000], X[:5000], y[:5000])
        learned = np.zeros(len(X), dtype=bool)
        learned[:5000] = True
        limit_memory(100 * 2**20)
        try:
            fleet.learn(keys[5000:], X[5000:], y[5000:])
        except MemoryError as error:
            limit_memory()
            assert f"{error.learned.sum()} of 55000 events" in error.__notes__[0]
            assert 0 < error.learned.sum() < 55000
            learned[5000:] = error.learned
        else:
            raise AssertionError("there was enough memory")
        for key in range(0, 50, 10):  # each event was learned as a whole or not at all, and those of a key in order
            mine = np.flatnonzero(keys == key)
            count = fleet[key].n_samples_seen_
            assert learned[mine[:count]].all() and not learned[mine[count:]].any()
            alone = ogp.OnlineGP(RBF(0.5), noise=0.1).fit(X[mine[:count]], y[mine[:count]])
            same(fleet[key], alone)
            more = mine[max(count - 10, 0) : count + 10]
            fleet.learn([key] * len(more), X[more], y[more])
            same(fleet[key], alone.partial_fit(X[more], y[more]))
        """
    )


@pytest.mark.parametrize(
    "model", ["KLMS(RBF(0.5))", "BetaKLMS(RBF(0.5))", "OnlineGP(RBF(0.5), noise=0.1)", "LocalGP(RBF(0.5))"]
)
@pytest.mark.parametrize("call", ["partial_fit", "run"])
def test_a_model_without_memory_keeps_the_rows_before(model, call):
    run_script(
        f"""
        X, y = stream(20_000, d=16)
        model = ogp.{model}.fit(X[:600], y[:600])
        n = 3000 if "OnlineGP" in "{model}" else 20_000
        limit_memory(1500 * 2**10)
        try:
            model.{call}(X[600:n], y[600:n])
        except MemoryError as error:
            limit_memory()
            seen = model.n_samples_seen_
            assert seen < n
            assert f"{{seen - 600}} of {{n - 600}} rows were learned" in str(error) or seen == 600, error
        else:
            raise AssertionError("there was enough memory")
        twin = ogp.{model}.fit(X[:seen], y[:seen])
        same(model, twin)
        more = slice(seen, seen + 50)
        same(model.partial_fit(X[more], y[more]), twin.partial_fit(X[more], y[more]))
        """
    )


@pytest.mark.attack
def test_ten_thousand_members_of_hundreds_of_sizes():
    """Members that stop at sizes of their own, and go on: the same bits as alone, and no memory but what they need."""
    out = run_script(
        """
        rng = np.random.default_rng(2026)
        fleet = ogp.Fleet(ogp.KLMS(RBF(0.7)), threads=2)
        models = {n: ogp.KLMS(RBF(0.7)).fit(*stream(n)) for n in rng.integers(1, 4000, 400).tolist()}
        sizes = rng.choice(list(models), 10_000)
        before = virtual_memory()
        for key, n in enumerate(sizes):
            fleet[key] = models[n]
        needed, used = sum(5 * 8 * (n + 16) for n in sizes), virtual_memory() - before
        assert used < 1.5 * needed, (used, needed)
        keys = rng.integers(0, 10_000, 100_000)
        X, y = stream(len(keys), seed=1)
        fleet.learn(keys, X, y)
        for key in range(0, 10_000, 100):
            mine = keys == key
            twin = ogp.KLMS(RBF(0.7)).fit(*stream(sizes[key]))
            same(fleet[key], twin.partial_fit(X[mine], y[mine]) if mine.any() else twin)
        print(f"10000 members of {len(set(sizes))} sizes: {used >> 20} MiB for {needed >> 20} MiB; 100000 events")
        """
    )
    report(out)
