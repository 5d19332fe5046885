"""A fleet: many independent models of one kind, one for each key, learning in one call."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array, check_X, check_Xy, count, no_features
from onlinegp.engine import thread_count
from onlinegp.engine.fleets import Numbers
from onlinegp.engine.members import Members, Which
from onlinegp.files.atomic import write_atomically
from onlinegp.files.container import ModelFileError, as_model_file_error, pack, unpack
from onlinegp.files.stacks import stacked, unstacked
from onlinegp.learner import Contents
from onlinegp.locks import ModelLock
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild
from onlinegp.models.saving import FEW
from onlinegp.predictions import Predictions
from onlinegp.trace import Trace


class Fleet:
    """Many independent models of one kind, one for each key: sensors, users, links, ...

    A key that is seen for the first time gets a model of its own, as `model` describes it. A call learns one event for
    each of a list of keys; events of one key are learned in the order of the list, and what a model learns does not
    depend on the others. Models made of parts lie side by side in memory and learn on several threads; any other model
    is one object for each key. One call at a time is let in: other threads wait.

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
        self.model.check()
        self._lock = ModelLock()
        self._numbers = Numbers()
        self._members: Members | None = None
        self._single = True
        self._names: Any = None  # of the columns, if the first events came in a data frame

    # Learning and predicting

    def learn(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> Self:
        """Learn row i of X (n, d) and y (n,) or (n, outputs) by the model of keys[i]; new keys get new models."""
        with self._lock:
            members, which, X, Y = self._events(keys, X, y)
            members.learn(which, X, Y, self._threads())
        return self

    def run(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> Trace:
        """Predict each event, then learn it, and return what was predicted."""
        origin = frames.origin(X)
        with self._lock:
            members, which, X, Y = self._events(keys, X, y)
            predictions, size = members.run(which, X, Y, self._threads())
        if self._single:
            return Trace(predictions.output(0), Y[:, 0].copy(), size, origin)
        return Trace(predictions, Y.copy(), size, origin)

    def predict(self, keys: Sequence[Hashable], X: ArrayLike, return_std: bool = False) -> Any:
        """Predict y at row i of X by the model of keys[i]; with `return_std`, its standard deviation too."""
        said = self.predict_distribution(keys, X)
        return (said.mean, said.std) if return_std else said.mean

    def predict_distribution(self, keys: Sequence[Hashable], X: ArrayLike) -> Predictions:
        """Return the predictive distributions of y at row i of X by the model of keys[i]."""
        values, _ = frames.read(X, self._names, owner="the fleet")
        if values is None and self.model.features_optional:
            values = no_features(keys)
        values = check_X(values, width=self._width, owner="the fleet")
        keys = _listed(keys, len(values))
        with self._lock:
            which = self._numbers.find(keys)
            if which is None:
                unknown = next(key for key in keys if key not in self._numbers)
                raise KeyError(f"no model has the key {unknown!r}. A key gets its model when it is first learned.")
            assert self._members is not None
            said = self._members.predict(which, values, self._threads())
        return said.output(0) if self._single else said

    # Members

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __getitem__(self, key: Hashable) -> OnlineRegressor:
        """Return a copy of the model of a key, as an estimator of its own."""
        with self._lock:
            if key not in self._numbers:
                raise KeyError(f"no model has the key {key!r}.")
            assert self._members is not None
            learned = self._members.dump(self._numbers[key])
            return copy.deepcopy(self.model).restore(self._about() | {"learned": learned})

    def __setitem__(self, key: Hashable, model: OnlineRegressor) -> None:
        """Let a copy of this model, which must be of the same kind, go on as the one of a key."""
        same = type(model) is type(self.model) and describe(model) == describe(self.model)
        contents = model.dump() if same else None
        if contents is None:
            raise ValueError(f"model must be a {self.model!r} that has learned something, got {model!r}.")
        with self._lock:
            if self._members is not None and self._shape() != (contents["features"], contents["outputs"]):
                d, p = self._shape()
                raise ValueError(f"model must have {d} features and {p} outputs, as the others of the fleet have.")
            self._put(key, contents)

    def items(self) -> Iterator[tuple[Hashable, OnlineRegressor]]:
        """Yield each key with a copy of its model."""
        return ((key, self[key]) for key in self)

    def __repr__(self) -> str:
        return f"Fleet({self.model!r}, {len(self)} models)"

    # Saving

    def save(self, path: str | Path, *, progress: bool = False) -> None:
        """Write all models to one file, beside it first and then renamed. Keys must be strings or whole numbers."""
        with self._lock:
            odd = next((key for key in self if type(key) not in (str, int)), None)
            if odd is not None:
                raise ValueError(f"keys must be strings or whole numbers to be saved, got {odd!r}. Rename that one.")
            write_atomically(path, [self.to_bytes(progress=progress)])

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None, progress: bool = False) -> Self:
        """Read a fleet from a file that `save` wrote; like model files, safe to open from strangers."""
        try:
            return cls.from_bytes(Path(path).read_bytes(), threads=threads, progress=progress)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None

    def to_bytes(self, *, progress: bool = False) -> bytes:
        """Return what `save` writes: the arrays of all models, one after the other."""
        with self._lock:
            members = self._members
            parts = [] if members is None else [members.dump(i) for i in _shown(len(self), "saving", progress)]
            header, arrays = stacked(parts)
            about = {} if members is None else self._about()
            return pack({"kind": "fleet", "model": describe(self.model), "keys": list(self)} | about | header, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, *, threads: int | None = None, progress: bool = False) -> Self:
        """Return the fleet that `to_bytes` wrote, or raise a ModelFileError."""
        header, arrays = unpack(data)
        if header.get("kind") != "fleet":
            raise ModelFileError(f"the file holds a {header.get('kind')}, not a fleet. Use onlinegp.load for a model.")
        with as_model_file_error():
            fleet = cls(rebuild(header["model"]), threads=threads)
            keys = _checked_keys(header["keys"])
            learned = unstacked(header, arrays, len(keys))
            about = {name: header[name] for name in ("features", "outputs", "single", "names")} if keys else {}
            if keys and not 0 <= about["features"] <= max(FEW, len(data) // 8):
                raise ModelFileError(f"impossible sizes: features = {about['features']!r}.")
            for i in _shown(len(keys), "loading", progress):
                fleet._put(keys[i], about | {"learned": next(learned)})
        return fleet

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles carry what the models have learned."""
        with self._lock:
            own = {name: value for name, value in vars(self).items() if name not in ("_lock", "_numbers", "_members")}
            learned = [] if self._members is None else [self._members.dump(i) for i in range(len(self))]
            return own | {"contents": (list(self), self._shape(), learned)}

    def __setstate__(self, own: dict[str, Any]) -> None:
        keys, shape, learned = own.pop("contents")
        vars(self).update(own)
        self._lock, self._numbers, self._members = ModelLock(), Numbers(), None
        for key, contents in zip(keys, learned, strict=True):
            about = {"features": shape[0], "outputs": shape[1], "single": self._single, "names": None}
            self._put(key, about | {"learned": contents, "names": [] if self._names is None else list(self._names)})

    # Inside

    @property
    def _width(self) -> int | None:
        return None if self._members is None else self._members.features

    def _shape(self) -> tuple[int, int]:
        return (0, 0) if self._members is None else (self._members.features, self._members.outputs)

    def _about(self) -> Contents:
        features, outputs = self._shape()
        names = [] if self._names is None else [str(name) for name in self._names]
        return {"features": features, "outputs": outputs, "single": self._single, "names": names, "largest": 0.0}

    def _threads(self) -> int:
        return self.threads or thread_count()

    def _events(self, keys: Sequence[Hashable], X: Any, y: Any) -> tuple[Members, Which, Array, Array]:
        """Return the members and the checked events; new keys get new members."""
        values, names = frames.read(X, self._names, owner="the fleet")
        y, width = frames.target(y), self._width
        if values is None and self.model.features_optional:
            values, width = no_features(y), width or 0
        values, y = check_Xy(values, y, width=width, owner="the fleet")
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if self._members is not None and ((y.ndim == 1) != self._single or outputs != self._members.outputs):
            expected = "(n,)" if self._single else f"(n, {self._members.outputs})"
            raise ValueError(f"y must have shape {expected} as before, got {y.shape}.")
        keys = _listed(keys, len(values))
        which = self._numbers.find(keys)
        new = dict.fromkeys(key for key in keys if key not in self._numbers) if which is None else {}
        if self._members is None:
            self._members = self.model.start_many(values.shape[1], outputs)
            self._single, self._names = y.ndim == 1, names
        if which is None:
            self._members.grow(len(self._numbers) + len(new))
            self._numbers.add(new)
            which = self._numbers.find(keys)
        assert which is not None
        return self._members, which, values, y.reshape(len(y), outputs)

    def _put(self, key: Hashable, contents: Contents) -> None:
        """Let the model of a key continue from these contents; a key that cannot is not added."""
        hash(key)
        if self._members is None:
            self._members = self.model.start_many(contents["features"], contents["outputs"])
            self._single = bool(contents["single"])
            self._names = np.array(contents["names"], dtype=object) if contents["names"] else None
        number = self._numbers[key] if key in self._numbers else len(self._numbers)
        self._members.grow(number + 1)
        self._members.load(number, contents["learned"])
        if key not in self._numbers:
            self._numbers.add([key])


def _shown(n: int, what: str, progress: bool) -> Any:
    if not progress:
        return range(n)
    from tqdm import tqdm

    return tqdm(range(n), desc=what, unit="model", leave=False)


def _listed(keys: Sequence[Hashable], n: int) -> Sequence[Hashable]:
    """Return keys as they are, those of an array or series as plain values; there must be n of them."""
    keys = keys.to_list() if hasattr(keys, "to_list") else keys.tolist() if hasattr(keys, "tolist") else keys
    if len(keys) != n:
        raise ValueError(f"keys must have one entry for each row of X, got {len(keys)} for {n} rows.")
    return keys


def _checked_keys(keys: Any) -> list[Hashable]:
    if not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
        raise ModelFileError("the keys are not strings and whole numbers.")
    if len(set(keys)) < len(keys):
        raise ModelFileError("a key is there twice.")
    return keys
