"""A fleet: many independent models of one kind, one for each key, learning in one call."""

from __future__ import annotations

import copy
import json
import reprlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array, check_X, check_Xy, count, no_features
from onlinegp.engine import thread_count
from onlinegp.engine.keys import Numbers
from onlinegp.engine.members import Members, Which
from onlinegp.files.atomic import write_atomically
from onlinegp.files.container import ModelFileError, as_model_file_error, chunks, unpack
from onlinegp.files.stacks import stacked, unstacked
from onlinegp.learner import Contents
from onlinegp.locks import ModelLock
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild
from onlinegp.models.health import BreakdownError
from onlinegp.models.saving import ABOUT, check_about, only
from onlinegp.predictions import Predictions
from onlinegp.trace import Trace

KEYS = "keys:"  # the name of the array that holds the keys, as JSON


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
            self._check(predictions, which)
            single = self._single
        if single:
            return Trace(predictions.output(0), Y[:, 0].copy(), size, origin)
        return Trace(predictions, Y.copy(), size, origin)

    def predict(self, keys: Sequence[Hashable], X: ArrayLike, return_std: bool = False) -> Any:
        """Predict y at row i of X by the model of keys[i]; with `return_std`, its standard deviation too."""
        said = self.predict_distribution(keys, X)
        return (said.mean, said.std) if return_std else said.mean

    def predict_distribution(self, keys: Sequence[Hashable], X: ArrayLike) -> Predictions:
        """Return the predictive distributions of y at row i of X by the model of keys[i]."""
        with self._lock:
            values, _ = frames.read(X, self._names, owner="the fleet")
            if values is None and self.model.features_optional:
                values = no_features(keys)
            values = check_X(values, width=self._width, owner="the fleet")
            keys = _listed(keys, len(values))
            which = self._numbers.find(keys)
            if which is None:
                unknown = next(key for key in keys if key not in self._numbers)
                raise KeyError(f"no model has the key {unknown!r}. A key gets its model when it is first learned.")
            assert self._members is not None
            said = self._members.predict(which, values, self._threads())
            self._check(said, which)
            return said.output(0) if self._single else said

    # Members

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        with self._lock:
            return iter(list(self._numbers))  # those of now, whatever other threads add

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
            mine = self._about()
            odd = [name for name in ("features", "outputs", "names") if mine[name] != contents[name]]
            if self._members is not None and odd:
                raise ValueError(
                    f"model must have {odd[0]} = {mine[odd[0]]}, as the others of the fleet have, got "
                    f"{contents[odd[0]]}."
                )
            self._put([key], contents, [contents["learned"]])

    def items(self) -> Iterator[tuple[Hashable, OnlineRegressor]]:
        """Yield each key with a copy of its model."""
        return ((key, self[key]) for key in self)

    def __repr__(self) -> str:
        return f"Fleet({self.model!r}, {len(self)} models)"

    # Saving

    def save(self, path: str | Path, *, progress: bool = False) -> None:
        """Write all models to one file, beside it first and then renamed. Keys must be strings or whole numbers."""
        write_atomically(path, self._chunks(progress))

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None, progress: bool = False) -> Self:
        """Read a fleet from a file that `save` wrote; like model files, safe to open whatever their source."""
        try:
            return cls.from_bytes(Path(path).read_bytes(), threads=threads, progress=progress)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None

    def to_bytes(self, *, progress: bool = False) -> bytes:
        """Return what `save` writes: the arrays of all models, one after the other."""
        return b"".join(self._chunks(progress))

    def _chunks(self, progress: bool) -> list[Any]:
        with self._lock:
            odd = next((key for key in self if type(key) not in (str, int)), None)
            if odd is not None:
                raise ValueError(f"keys must be strings or whole numbers to be saved, got {odd!r}. Rename that one.")
            members = self._members
            parts = [] if members is None else [members.dump(i) for i in _shown(len(self), "saving", progress)]
            header, arrays = stacked(parts)
            keys = np.frombuffer(json.dumps(list(self)).encode(), dtype=np.uint8)
            about = {"kind": "fleet", "model": describe(self.model)} | (self._about() if parts else {})
            return chunks(about | header, arrays | {KEYS: keys})

    @classmethod
    def from_bytes(cls, data: bytes, *, threads: int | None = None, progress: bool = False) -> Self:
        """Return the fleet that `to_bytes` wrote, or raise a ModelFileError."""
        header, arrays = unpack(data)
        if header.get("kind") != "fleet":
            what = reprlib.repr(header.get("kind"))
            raise ModelFileError(f"the file holds a {what}, not a fleet. Use onlinegp.load for a model.")
        only(header, "kind", "model", "texts", *ABOUT)
        with as_model_file_error():
            model = rebuild(header["model"])
            model.check()
            keys = _checked_keys(arrays.pop(KEYS, None))
            learned = unstacked(header, arrays, len(keys))
            if keys:
                check_about(header, arrays)
        fleet = cls(model, threads=threads)
        with as_model_file_error():
            fleet._put(keys, header, (next(learned) for _ in _shown(len(keys), "loading", progress)))
        return fleet

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles carry what the models have learned."""
        with self._lock:
            own = {name: value for name, value in vars(self).items() if name not in ("_lock", "_numbers", "_members")}
            learned = [] if self._members is None else [self._members.dump(i) for i in range(len(self))]
            return own | {"contents": (list(self), self._about(), learned)}

    def __setstate__(self, own: dict[str, Any]) -> None:
        contents = own.pop("contents")
        vars(self).update(own)
        self._lock, self._numbers, self._members = ModelLock(), Numbers(), None
        self._put(*contents)

    # Inside

    @property
    def _width(self) -> int | None:
        return None if self._members is None else self._members.features

    def _about(self) -> Contents:
        members, names = self._members, [] if self._names is None else [str(name) for name in self._names]
        features, outputs = (0, 0) if members is None else (members.features, members.outputs)
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
        members = self._members
        if members is None:
            members = self.model.start_many(values.shape[1], outputs)
        if which is None:
            new = dict.fromkeys(key for key in keys if key not in self._numbers)
            members.grow(len(self._numbers) + len(new))
            if self._members is None:
                self._members, self._single, self._names = members, y.ndim == 1, names
            self._numbers.add(new)
            which = self._numbers.find(keys)
        assert which is not None
        return members, which, values, y.reshape(len(y), outputs)

    def _put(self, keys: Sequence[Hashable], about: Contents, learned: Iterable[Contents]) -> None:
        """Let the models of these keys continue from what they had learned; if one cannot, no key is added."""
        if not keys:
            return
        members = self._members
        if members is None:
            members = self.model.start_many(about["features"], about["outputs"])
        new = dict.fromkeys(key for key in keys if key not in self._numbers)
        number = dict(zip(new, range(len(self._numbers), len(self._numbers) + len(new)), strict=True))
        members.grow(len(self._numbers) + len(new))
        for key, contents in zip(keys, learned, strict=True):
            members.load(number[key] if key in number else self._numbers[key], contents)
        if self._members is None:
            names = np.array(about["names"], dtype=object) if about["names"] else None
            self._members, self._single, self._names = members, about["single"], names
        self._numbers.add(new)

    def _check(self, said: Predictions, which: Which) -> None:
        """Raise a BreakdownError if a prediction is not finite."""
        good = (np.isfinite(said.mean) & np.isfinite(said.std)).all(axis=1)
        if not good.all():
            key = list(self._numbers)[which[np.argmin(good)]]
            raise BreakdownError(
                f"the model of the key {key!r} broke down: its prediction is not finite. {self.model.remedy}"
            )


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


def _checked_keys(text: np.ndarray | None) -> list[Hashable]:
    keys = [] if text is None else json.loads(text.tobytes())
    if text is None or not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
        raise ModelFileError("the keys are not strings and whole numbers.")
    if len(set(keys)) < len(keys):
        raise ModelFileError("a key is there twice.")
    return keys
