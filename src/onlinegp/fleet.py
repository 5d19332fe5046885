"""A fleet: many independent models of one kind, one for each key, learning in one call."""

from __future__ import annotations

import copy
import itertools
import json
import struct
import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, check_X, check_Xy, count
from onlinegp.engine.fleets import NativeFleet, Numbers, PythonFleet, Who, make_fleet
from onlinegp.files.atomic import write_atomically
from onlinegp.files.model_file import (
    INTEGERS,
    SCALARS,
    ModelFileError,
    as_model_file_error,
    contents,
    describe,
    header_from,
    rebuild,
    state_from,
)
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.state import State

MAGIC = b"ogpfleet"
VERSION = 2
PREFIX, CHECKSUM = struct.Struct("<8sHI"), struct.Struct("<I")
RECORD = struct.Struct("<" + "".join("q" if name in INTEGERS else "d" for name in SCALARS))


class Fleet:
    """Many independent models of one recipe, one for each key: sensors, users, links, ...

    A key that is seen for the first time gets a model of its own, as `model` describes it. Models lie side by side in
    memory, and a call learns one event for each of a list of keys, on several threads; events of one key are learned in
    the order of the list, and what a model learns does not depend on the others.

    Parameters
    ----------
    model : estimator
        One that has not learned anything; the fleet copies it.
    threads : int, optional
        How many threads a call may use; by default ONLINEGP_THREADS, or the cores.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> fleet = ogp.Fleet(ogp.KRLST(budget=50))
    >>> fleet.learn(["a", "b", "a"], np.zeros((3, 2)), [1.0, 2.0, 1.0])
    Fleet(KRLST(budget=50), 2 models)
    >>> fleet.predict(["a", "b"], np.zeros((2, 2))).round(1)
    array([1., 2.])
    """

    def __init__(self, model: OnlineRegressor, *, threads: int | None = None) -> None:
        if not isinstance(model, OnlineRegressor):
            raise TypeError(f"model must be an estimator such as onlinegp.KRLST(budget=50), got {model!r}.")
        if model.__sklearn_is_fitted__():
            raise ValueError("model must not have learned anything yet: a fleet starts every model from the prior.")
        self.model = copy.deepcopy(model)
        self.threads = None if threads is None else count("Use None for as many as there are cores.", threads=threads)
        self._recipe = self.model.recipe()
        self._numbers = Numbers()
        self._fleet: PythonFleet | NativeFleet | None = None

    # Learning and predicting

    def learn(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> Self:
        """Learn row i of X (n, d) and y (n,) by the model of keys[i]; new keys get new models."""
        fleet, who, X, Y = self._events(keys, X, y)
        fleet.learn(who, X, Y, self._threads())
        return self

    def run(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Predict each event, then learn it; return the means (n,) and standard deviations of y (n,)."""
        fleet, who, X, Y = self._events(keys, X, y)
        mean, variance = fleet.run(who, X, Y, self._threads())
        return mean[:, 0], np.sqrt(variance)

    def predict(self, keys: Sequence[Hashable], X: ArrayLike, return_std: bool = False) -> Any:
        """Predict y at row i of X by the model of keys[i]; with `return_std`, its standard deviation too."""
        X = check_X(X, width=self._width)
        keys = _listed(keys, len(X))
        who = self._numbers.find(keys)
        if who is None:
            unknown = next(key for key in keys if key not in self._numbers)
            raise KeyError(f"no model has the key {unknown!r}. A key gets its model when it is first learned.")
        assert self._fleet is not None
        mean, variance = self._fleet.predict(who, X, self._threads())
        return (mean[:, 0], np.sqrt(variance)) if return_std else mean[:, 0]

    # Members

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __getitem__(self, key: Hashable) -> OnlineRegressor:
        """Return a copy of the model of a key, as an estimator of its own."""
        if key not in self._numbers:
            raise KeyError(f"no model has the key {key!r}.")
        assert self._fleet is not None
        model = copy.deepcopy(self.model)
        model._adopt(self._recipe, copy.deepcopy(self._fleet.state(self._numbers[key])), single=True)
        return model

    def __setitem__(self, key: Hashable, model: OnlineRegressor) -> None:
        """Let a copy of this model, which must be of the same kind, go on as the one of a key."""
        same = type(model) is type(self.model) and repr(model) == repr(self.model)
        if not same or not model.__sklearn_is_fitted__() or not model._flat:
            raise ValueError(f"model must be a {self.model!r} that has learned from one output, got {model!r}.")
        self._put(key, copy.deepcopy(model._state))

    def items(self) -> Iterator[tuple[Hashable, OnlineRegressor]]:
        """Yield each key with a copy of its model."""
        return ((key, self[key]) for key in self)

    def __repr__(self) -> str:
        return f"Fleet({self.model!r}, {len(self)} models)"

    # Saving

    def save(self, path: str | Path, *, progress: bool = False) -> None:
        """Write all models to one file, beside it first and then renamed. Keys must be strings or whole numbers."""
        odd = next((key for key in self if not isinstance(key, (str, int)) or isinstance(key, bool)), None)
        if odd is not None:
            raise ValueError(f"keys must be strings or whole numbers to be saved, got {odd!r}. Rename that one.")
        write_atomically(path, self._chunks(progress))

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None, progress: bool = False) -> Self:
        """Read a fleet from a file that `save` wrote; like model files, safe to open from strangers."""
        try:
            header, body = _opened(Path(path).read_bytes())
            with as_model_file_error():
                fleet = cls(rebuild(header), threads=threads)
                fleet._fill(header["keys"], header["features"], body, progress)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None
        return fleet

    # Inside

    @property
    def _width(self) -> int | None:
        return None if self._fleet is None else self._fleet.features

    def _threads(self) -> int:
        from onlinegp.engine import thread_count

        return self.threads or thread_count()

    def _start(self, features: int) -> PythonFleet | NativeFleet:
        if self._fleet is None:
            self._fleet = make_fleet(self.model.engine, self._recipe, features, 1)
        return self._fleet

    def _events(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> tuple[Any, Who, Array, Array]:
        X, y = check_Xy(X, y, width=self._width)
        if y.ndim != 1:
            raise ValueError(f"y must have shape (n,), one number an event, got {y.shape}.")
        keys = _listed(keys, len(X))
        who = self._numbers.find(keys)
        new = dict.fromkeys(key for key in keys if key not in self._numbers) if who is None else {}
        fleet = self._start(X.shape[1])
        if who is None:
            fleet.grow(len(self._numbers) + len(new))
            self._numbers.add(new)
            who = self._numbers.find(keys)
        assert who is not None
        return fleet, who, X, y[:, None]

    def _put(self, key: Hashable, state: State) -> None:
        if self._fleet is not None and self._fleet.features != state.centers.shape[1]:
            raise ValueError(f"model must have {self._fleet.features} features, got {state.centers.shape[1]}.")
        fleet = self._start(state.centers.shape[1])
        if key not in self._numbers:
            fleet.grow(len(self._numbers) + 1)
            self._numbers.add([key])
        fleet.put(self._numbers[key], state)

    # The file: a prefix, the header (JSON: class, parameters, keys), each state (scalars, arrays), the CRC-32 of it all

    def _chunks(self, progress: bool) -> Iterator[bytes]:
        header = describe(self.model) | {"keys": list(self), "features": self._width}
        text = json.dumps(header).encode()
        checksum = 0
        for chunk in itertools.chain([PREFIX.pack(MAGIC, VERSION, len(text)), text], self._records(progress)):
            checksum = zlib.crc32(chunk, checksum)
            yield chunk
        yield CHECKSUM.pack(checksum)

    def _records(self, progress: bool) -> Iterator[bytes]:
        for i in _shown(len(self), "saving", progress):
            assert self._fleet is not None
            state = self._fleet.state(i)
            yield RECORD.pack(*(getattr(state, name) for name in SCALARS)) + contents(state)

    def _fill(self, keys: list[Hashable], features: int, body: memoryview, progress: bool) -> None:
        """Take the states of all keys from what follows the header."""
        if not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
            raise ModelFileError("the keys are not strings and whole numbers.")
        if len(set(keys)) < len(keys):
            raise ModelFileError("a key is there twice.")
        for i in _shown(len(keys), "loading", progress):
            if len(body) < RECORD.size:
                raise ModelFileError(f"there are {len(keys)} keys, and only {i} models.")
            scalars = dict(zip(SCALARS, RECORD.unpack_from(body), strict=True))
            state, body = state_from(self._recipe, features, 1, scalars, body[RECORD.size :])
            self._put(keys[i], state)
        if body:
            raise ModelFileError(f"{len(body)} bytes too many after the last model.")


def _shown(n: int, what: str, progress: bool) -> Iterable[int]:
    if not progress:
        return range(n)
    from tqdm import tqdm

    return tqdm(range(n), desc=what, unit="model", leave=False)


def _listed(keys: Sequence[Hashable], n: int) -> Sequence[Hashable]:
    """Return keys as they are, those of an array as plain numbers or strings; there must be n of them."""
    keys = keys.tolist() if hasattr(keys, "tolist") else keys
    if len(keys) != n:
        raise ValueError(f"keys must have one entry for each row of X, got {len(keys)} for {n} rows.")
    return keys


def _opened(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the header of a fleet file and what follows it, once the checksum is right."""
    if len(data) < PREFIX.size + CHECKSUM.size or not data.startswith(MAGIC):
        raise ModelFileError("this is not a fleet file.")
    _, version, length = PREFIX.unpack_from(data)
    if version != VERSION:
        raise ModelFileError(f"fleet files of version {version} are unknown here; this is version {VERSION}.")
    view = memoryview(data)
    inner, end = view[: -CHECKSUM.size], view[-CHECKSUM.size :]
    if CHECKSUM.unpack(end) != (zlib.crc32(inner),):
        raise ModelFileError("the file is damaged or incomplete. Restore it from a copy.")
    return header_from(inner[PREFIX.size : PREFIX.size + length]), inner[PREFIX.size + length :]
