"""Eight threads on one model and on one fleet, forks in the middle of calls: none lost, none moved, nothing waits."""

import os
import sys
import threading

import numpy as np
import pytest
from processes import report, run_script

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.fleet.keys import Numbers
from onlinegp.kernels import RBF

native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
ENGINES = [pytest.param("native", marks=native), "python"]
THREADS = 8


@pytest.fixture(autouse=True)
def quick_switches():
    """Let threads take turns a hundred times as often as usual: what can go wrong between two steps then does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def at_once(*actions) -> None:
    """Run each action in a thread of its own, all from the same moment on; raise what one of them raised."""
    start, failures = threading.Barrier(len(actions)), []

    def act(action):
        start.wait()
        try:
            action()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# A kernel that is zero between any two of the inputs: each center's weight then tells how often it was learned, and
# with which y, whatever the order
POINTS = 16


def points(thread: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(thread * POINTS, (thread + 1) * POINTS, dtype=float)
    return x[:, None], x + 1.0


def separate(engine: str):
    return ogp.QKLMS(RBF(1e-3), step=0.01, radius=0.1, engine=engine)


def weights(model) -> dict[float, float]:
    return dict(zip(model.centers_[:, 0].tolist(), model.alpha_.tolist(), strict=True))


def eight_on_one_model(engine: str, passes: int) -> int:
    """Each thread learns its own points, in all ways; returns how many samples there were."""
    model = separate(engine).fit(*points(THREADS))  # the ninth set of points starts it
    expected = separate("native" if available() else engine).fit(*points(THREADS))

    def learn(thread: int):
        X, y = points(thread)
        for i in range(passes):
            if i % 3 == 0:
                model.partial_fit(X, y)
            elif i % 3 == 1:
                for x, target in zip(X, y, strict=True):
                    model.learn_one(x, target)
            else:
                model.run(X, y)
            if i % 16 == 0:
                assert np.isfinite(model.predict(X)).all()
                assert len(model.centers_) <= (THREADS + 1) * POINTS

    at_once(*(lambda thread=thread: learn(thread) for thread in range(THREADS)))
    for thread in range(THREADS):
        X, y = points(thread)
        expected.partial_fit(np.tile(X, (passes, 1)), np.tile(y, passes))
    assert model.n_samples_seen_ == expected.n_samples_seen_
    assert weights(model) == pytest.approx(weights(expected), rel=1e-12 if engine == "python" else 0.0, abs=0.0)
    return THREADS * passes * POINTS


def eight_on_one_fleet(engine: str, calls: int, rows: int) -> int:
    """Each thread has keys of its own, new ones in every call; returns how many events there were."""
    fleet = ogp.Fleet(ogp.KRLST(RBF(0.7), budget=6, engine=engine), threads=2)
    fleet.learn(["first"], np.zeros((1, 2)), [0.0])
    streams = {}

    def learn(thread: int):
        rng = np.random.default_rng(thread)
        mine = streams[thread] = []
        for i in range(calls):
            keys = [(thread, int(k)) for k in rng.integers(0, 3 + i // 4, rows)]
            X = rng.standard_normal((rows, 2))
            y = X[:, 0] + 10.0 * thread
            fleet.learn(keys, X, y)
            mine.append((keys, X, y))
            if i % 8 == 0:
                fleet.predict(keys, X)
                assert fleet[keys[0]].n_samples_seen_ > 0

    at_once(*(lambda thread=thread: learn(thread) for thread in range(THREADS)))
    for thread in range(THREADS):
        keys = [key for part in streams[thread] for key in part[0]]
        X, y = (np.concatenate([part[i] for part in streams[thread]]) for i in (1, 2))
        own = np.array([k for _, k in keys])
        for k in np.unique(own):
            member = fleet[(thread, int(k))]
            assert member.n_samples_seen_ == (own == k).sum()
            alone = ogp.KRLST(RBF(0.7), budget=6, engine=engine).fit(X[own == k], y[own == k])
            np.testing.assert_array_equal(member.alpha_, alone.alpha_)
    assert len(fleet) == 1 + sum(len({key for part in mine for key in part[0]}) for mine in streams.values())
    return THREADS * calls * rows


@pytest.mark.parametrize("engine", ENGINES)
def test_eight_threads_on_one_model(engine):
    eight_on_one_model(engine, passes=60)


def native_fleet():
    from onlinegp.engine import _native
    from onlinegp.engine.recipe import compiled_recipe

    fleet = _native.Members(compiled_recipe(ogp.KRLST(RBF(0.7), budget=6).recipe(), 2), 2, 1, False)
    fleet.grow(4 * THREADS)
    return fleet


@native
def test_eight_threads_on_one_native_fleet():
    """The fleet itself: members are there before the threads start."""
    fleet, alone = native_fleet(), native_fleet()
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((THREADS, 2000, 2)), rng.standard_normal((THREADS, 2000, 1))
    who = rng.integers(0, 4, (THREADS, 2000)) + 4 * np.arange(THREADS)[:, None]

    def learn(thread: int):
        for i in range(0, 2000, 50):
            here = slice(i, i + 50)
            call = fleet.learn if i % 100 else fleet.run
            call(who[thread, here], X[thread, here], Y[thread, here], 2)
            fleet.predict(who[thread, here], X[thread, here], 2)
            fleet.save(int(who[thread, i]))

    at_once(*(lambda thread=thread: learn(thread) for thread in range(THREADS)))
    alone.learn(who.ravel(), X.reshape(-1, 2), Y.reshape(-1, 1), 1)
    for member in range(4 * THREADS):
        one, two = fleet.save(member), alone.save(member)
        assert one["seen"] == two["seen"]
        np.testing.assert_array_equal(one["alpha"], two["alpha"])


def test_a_number_belongs_to_one_key():
    numbers = Numbers()
    at_once(*(lambda t=t: [numbers.add([key, f"{t}-{key}"]) for key in range(3000)] for t in range(THREADS)))
    assert len(numbers) == 3000 * (THREADS + 1)
    assert sorted(numbers[key] for key in numbers) == list(range(len(numbers)))
    found = numbers.find(list(numbers))
    np.testing.assert_array_equal(found, np.arange(len(numbers)))


def test_keys_that_cannot_be_added_leave_nothing_behind(monkeypatch):
    numbers = Numbers()
    numbers.add(["a", 5])
    with monkeypatch.context() as patch:
        patch.setattr(np, "concatenate", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            numbers.add(["b", 900])
    assert list(numbers) == ["a", 5, "b"]
    numbers.add([900])
    assert numbers.find([900, "b"]).tolist() == [3, 2]


@native
def test_a_list_of_keys_that_changes_meanwhile_is_refused():
    keys = ["a", None, *range(2000)]

    class Odd:
        def __hash__(self):
            keys[2:] = []
            return 1

    keys[1] = Odd()
    numbers = Numbers()
    numbers.add(["a", 7])
    assert numbers.find(keys) is None or len(keys) > 2
    keys[:] = ["a", Odd(), *range(2000)]
    numbers.add([keys[1]])
    keys[2:] = [7] * 2000
    with pytest.raises(ValueError, match="fewer"):
        numbers.find(keys)


@native
def test_properties_wait_without_the_interpreter():
    """A thread that waits for a model leaves the interpreter to the others, and signals and Python code go on."""
    out = run_script(
        """
        X, y = stream(60_000, d=8)
        model = ogp.KRLST(RBF(0.7), budget=100).fit(X[:300], y[:300])
        fleet = ogp.Fleet(ogp.KRLST(RBF(0.7), budget=100), threads=2).learn(np.arange(300) % 3, X[:300], y[:300])
        ticks = {"model": 0, "fleet": 0}

        def ticking(what, look, learn):
            worker = threading.Thread(target=learn)
            worker.start()
            looking = threading.Thread(target=lambda: [look() for _ in range(3)])
            looking.start()
            while worker.is_alive():
                ticks[what] += 1
                time.sleep(0.001)
            looking.join()

        ticking("model", lambda: (model.centers_, model.to_bytes()), lambda: model.partial_fit(X, y))
        ticking("fleet", lambda: fleet[0], lambda: fleet.learn(np.arange(len(X)) % 3, X, y))
        print(min(ticks.values()))
        """
    )
    assert int(out) > 20


FORK = """
        def forked(use):
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(20)  # a deadlock ends here, and not well
                code = 1
                try:
                    use()
                    code = 0
                except RuntimeError as error:
                    code = 3 if "forked" in str(error) else 4
                finally:
                    os._exit(code)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        X, y = stream(200_000, d=8)
"""


@native
@forks
def test_a_fork_in_the_middle_of_a_call():
    run_script(
        FORK
        + """
        from engines import make_engine
        from onlinegp.engine import _native
        from onlinegp.engine.recipe import compiled_recipe

        Y, which = y[:, None], np.arange(len(X)) % 3
        recipe = ogp.KRLST(RBF(0.7), budget=100).recipe()
        engine, other = (make_engine("native", recipe, recipe.start(8)) for _ in range(2))
        fleet = _native.Members(compiled_recipe(recipe, 8), 8, 1, False)
        fleet.grow(3)
        done = []

        def learn():
            while not done:
                engine.learn(X[:50_000], Y[:50_000])
                fleet.learn(which[:50_000], X[:50_000], Y[:50_000], 2)

        def one_more():
            engine.learn_one(X[0], y[0]) or engine.learn(X[:1], Y[:1])

        worker = threading.Thread(target=learn)
        worker.start()
        codes = set()
        for i in range(6):
            time.sleep(0.05 + 0.05 * i)
            codes |= {forked(one_more), forked(engine.weights)}
            codes |= {forked(lambda: fleet.learn(which[:1], X[:1], Y[:1], 1)), forked(lambda: fleet.save(1))}
            assert forked(lambda: other.learn(X[:10], Y[:10])) == 0
        assert 3 in codes and codes <= {0, 3}, codes  # usable, or a message that says why not
        done.append(True)
        worker.join()
        assert forked(one_more) == 0
        assert forked(lambda: fleet.learn(which[:9], X[:9], Y[:9], 2)) == 0
        """
    )


@native
@forks
def test_a_child_of_a_thread_hears_signals():
    run_script(
        FORK
        + """
        def work():
            model = ogp.KLMS(RBF(0.7)).fit(X[:3], y[:3])

            class Interruption(Exception):
                pass

            def stop(*_):
                raise Interruption

            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                model.partial_fit(X, y)
                raise AssertionError("went on to the end")
            except Interruption:
                assert 3 < model.n_samples_seen_ < len(X)

        codes = []
        thread = threading.Thread(target=lambda: codes.append(forked(work)))
        thread.start(), thread.join()
        assert codes == [0], codes
        """
    )


@pytest.mark.attack
@pytest.mark.parametrize("engine", ENGINES)
def test_a_million_samples_from_eight_threads(engine):
    share = 1 if engine == "native" else 10  # the Python engine is slower
    samples = eight_on_one_model(engine, passes=4000 // share)
    events = eight_on_one_fleet(engine, calls=500 // share, rows=125)
    report(f"{engine}: {THREADS} threads, {samples} samples on a model, {events} on a fleet: none lost, none moved")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_in_the_middle_of_a_call_is_said_at_the_border():
    """The child has the lock of the model, and not the thread that would release it: an error, no deadlock."""
    predicted = run_script(
        """
        model, inside = ogp.KLMS(engine="python").fit(np.zeros((1, 1)), [0.0]), threading.Event()
        learner = model._learner

        def slowly(X, Y, learn=learner.learn):
            inside.set()
            time.sleep(3.0)
            learn(X, Y)

        learner.learn = slowly
        threading.Thread(target=model.partial_fit, args=([[1.0]], [1.0]), daemon=True).start()
        inside.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                model.predict([[0.0]])
            except RuntimeError as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert predicted.split() == ["7"]
