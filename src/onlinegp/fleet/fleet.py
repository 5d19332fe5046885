"""Fleets: many independent models of one kind, one per key."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp import frames
from onlinegp.checks import Array, check_X, check_Xy, count, no_features
from onlinegp.engine import thread_count
from onlinegp.files.atomic import write_atomically
from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.fleet import fleet_file
from onlinegp.fleet.keys import listed
from onlinegp.fleet.members import LearnerMembers, Members, in_order, known_before, start_members
from onlinegp.fleet.memory import Home, Memory, State, learning, taken
from onlinegp.fleet.sqlite import Stored, open_store, stored_model
from onlinegp.fleet.sqlite_file import Store, is_store
from onlinegp.locks import Locked
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.breakdown import all_finite, check_events
from onlinegp.models.description import describe, rebuild
from onlinegp.models.model_file import ABOUT
from onlinegp.models.notebook import fleet_html
from onlinegp.predictions import Predictions
from onlinegp.progress import shown
from onlinegp.state import Contents, Schema
from onlinegp.trace import Trace


class Fleet(Locked):
    """Many independent models of one kind, one per key: sensors, users, links, ...

    A new key gets its own copy of `model`. A call gets a list of keys, and a row for each key in the list. The rows of
    a key are learned in the order of the list, and the models do not influence each other. Compiled models share memory
    and learn on several threads: recipes such as KRLST, and wrappers such as ``Scaled(Calibrated(KRLST()))``. Any other
    model is one Python object per key; these learn one after the other. Only one thread at a time can use a fleet;
    other threads wait.

    With a `store`, a SQLite file, a fleet can have more models than fit into memory: the `keep` most recently used
    models are in memory, the others in the file. `commit`, or the end of a ``with`` block, writes everything to disk.
    If the process is killed, the file contains the models of the last commit, which is always between two calls. If the
    store exists, the fleet continues with its models. If the store cannot be written, for example because the disk is
    full, the file stays at its last commit, and all calls raise an error until it is opened again.

    Parameters
    ----------
    model : estimator
        A model that has not learned anything. The fleet copies it.
    threads : int, optional
        The number of threads of a call; by default ONLINEGP_THREADS, or the number of cores.
    store : str or Path, optional
        The SQLite file. With a store, the keys must be all strings or all whole numbers. While the file is open, other
        processes can read it (``onlinegp inspect``) but not write to it.
    keep : int
        With a store, the largest number of models in memory.
    compact : bool
        Whether to round states after each call, so that they take a third of the bytes; see `onlinegp.fleet.step`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> fleet = ogp.Fleet(ogp.KRLST(budget=50))
    >>> fleet.learn(["a", "b", "a"], np.zeros((3, 2)), [1.0, 2.0, 1.0])
    Fleet(KRLST(budget=50), 2 models)
    >>> fleet.predict(["a", "b"], np.zeros((2, 2))).round(1)
    array([1., 2.])
    """

    def __init__(
        self,
        model: OnlineRegressor,
        *,
        threads: int | None = None,
        store: str | Path | Store | None = None,
        keep: int = 10_000,
        compact: bool = False,
    ) -> None:
        if not isinstance(model, OnlineRegressor):
            raise TypeError(f"model must be an estimator such as onlinegp.KRLST(budget=50), got {model!r}.")
        if model.__sklearn_is_fitted__():
            raise ValueError("model must not have learned anything yet. Use model.unfitted().")
        self.model = copy.deepcopy(model)
        self.threads = None if threads is None else count("Use None for one thread per core.", threads=threads)
        self.model.check()
        keep = count("It is a number of models in memory.", keep=keep)
        self._single = True
        self._names: Any = None  # column names, if the first rows were a data frame
        self._home: Home = Memory(compact)
        if store is not None:
            self._home, about = open_store(store, keep, self.model, compact)
            self._remember(about)

    # Learning and predicting

    def learn(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> Self:
        """Learn row i of X (n, d) and y (n,) or (n, outputs) with the model of keys[i]. New keys get new models."""
        with self._lock:
            members, keys, X, Y = self._events(keys, X, y)
            with learning(self._home, keys) as parts:
                for rows, which in parts:
                    np.maximum.at(members.largest, which, np.abs(Y[rows]).max(axis=1))
                    members.learn(which, X[rows], Y[rows], self.threads or thread_count())
        return self

    def run(self, keys: Sequence[Hashable], X: ArrayLike, y: ArrayLike) -> Trace:
        """Predict each row with the model of its key, then learn it. Return the predictions."""
        origin = frames.origin(X)
        with self._lock:
            members, keys, X, Y = self._events(keys, X, y)
            size, scored, predicted, order = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=bool), [], []
            with learning(self._home, keys) as parts:
                for rows, which in parts:
                    scored[rows] = known_before(members, which, self.model.delay)
                    predictions, size[rows] = members.run(which, X[rows], Y[rows], self.threads or thread_count())
                    name = self._name(keys, rows)
                    predicted.append(check_events(self.model, predictions, which, Y[rows], members.largest, name))
                    order.append(rows)
            trace = Trace(in_order(predicted, order), Y.copy(), size, scored, origin)
            return trace.output(0) if self._single else trace

    def begin(self, features: int, outputs: int | None = None) -> Self:
        """Set the number of columns of X and y before the first rows. If `outputs` is None, y is (n,)."""
        with self._lock:
            if self._home.members is None:
                self._single = outputs is None
                members = start_members(self.model, features, outputs or 1)
                self._home.adopt(members, self._about(members))
        return self

    def predict(self, keys: Sequence[Hashable], X: ArrayLike, return_std: bool = False) -> Any:
        """Predict y at row i of X with the model of keys[i]. With `return_std`, also return the standard deviation."""
        predicted = self.predict_distribution(keys, X)
        return (predicted.mean, predicted.std) if return_std else predicted.mean

    def predict_distribution(self, keys: Sequence[Hashable], X: ArrayLike) -> Predictions:
        """Return the predictive distribution of y at row i of X from the model of keys[i]."""
        return self._predicted(keys, X, skip=False)

    def skip(self, keys: Sequence[Hashable], X: ArrayLike) -> Predictions:
        """Predict rows without learning them, and continue after them.

        For most models this is `predict_distribution`. A model that uses past values of y remembers its own predictions
        instead.
        """
        return self._predicted(keys, X, skip=True)

    def _predicted(self, keys: Sequence[Hashable], X: ArrayLike, *, skip: bool) -> Predictions:
        with self._lock:
            values, _ = frames.read(X, self._names, owner=frames.FLEET)
            if values is None and self.model.features_optional:
                values = no_features(keys)
            values = check_X(values, width=self._width, owner="the fleet")
            keys = listed(keys, len(values))
            for key in self._home.unknown(keys):
                raise KeyError(f"no model has the key {key!r}. A key gets its model when it is first learned.")
            assert self._home.members is not None
            predict, parts, order = self._home.members.skip if skip else self._home.members.predict, [], []
            for rows, which in self._home.parts(keys, learn=skip and self._home.members.remembers):
                predictions = predict(which, values[rows], self.threads or thread_count())
                parts.append(all_finite(predictions, self._name(keys, rows), self.model.inner_facts.remedy))
                order.append(rows)
            predicted = in_order(parts, order)
            return predicted.output(0) if self._single else predicted

    def newer(self, keys: Sequence[Hashable], order: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which events come after the last event of their key, and store their order.

        Parameters
        ----------
        keys : sequence
        order : sequence of numbers, or of texts
            The position of each event in the order of its key, such as a time. The first event of a key is always new.
        """
        with self._lock:
            return self._home.newer(listed(keys, len(order)), order)

    def until_tuning(self, keys: Sequence[Hashable]) -> dict[Hashable, float]:
        """Return the number of rows until the next tuning of the model of each key; infinity without tuning."""
        with self._lock:
            members, found = self._home.members, dict.fromkeys(keys, np.inf)
            if isinstance(members, LearnerMembers):
                known = [key for key in found if key in self._home]
                found = dict.fromkeys(found, members.until_tuning(None))
                for rows, which in self._home.parts(known, learn=False) if known else ():
                    found |= zip(taken(known, rows), map(members.until_tuning, which.tolist()), strict=True)
            return found

    # The store

    def commit(self) -> None:
        """Write everything that was learned to the store in one transaction, which is complete or absent after a crash.

        Calls also commit earlier changes if there are many of them, unless `keep_beside` is in use.
        """
        with self._lock:
            if isinstance(self._home, Stored):
                self._home.commit()

    def keep_beside(self, note: Callable[[], Any]) -> None:
        """At each commit, store the JSON-compatible result of `note()`; see `beside`.

        From now on only `commit` writes, so that the stored value always matches the models.
        """
        self._stored_home().note = note

    @property
    def beside(self) -> Any:
        """The value from `keep_beside` at the last commit, or None."""
        return self._stored_home().store.fact("note")

    def close(self) -> None:
        """Close the store. Uncommitted changes are lost."""
        with self._lock:
            if isinstance(self._home, Stored):
                self._home.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def _stored_home(self) -> Stored:
        if not isinstance(self._home, Stored):
            raise ValueError("the fleet has no store. Create it with Fleet(model, store=FILE).")
        return self._home

    # Members

    def __len__(self) -> int:
        return len(self._home)

    def __iter__(self) -> Iterator[Hashable]:
        """Yield the keys in the order of their first rows or, with a store, in any order."""
        with self._lock:
            return iter(self._home)

    def __contains__(self, key: object) -> bool:
        return key in self._home

    def __getitem__(self, key: Hashable) -> OnlineRegressor:
        """Return a copy of the model of a key."""
        with self._lock:
            if key not in self._home:
                raise KeyError(f"no model has the key {key!r}.")
            learned = {"learned": self._home.dump(key), "largest": self._home.largest(key)}
            return copy.deepcopy(self.model).load(self._about(self._home.members) | learned)

    def __setitem__(self, key: Hashable, model: OnlineRegressor) -> None:
        """Replace the model of a key by a copy of `model`, which must have the same class and parameters."""
        same = type(model) is type(self.model) and describe(model) == describe(self.model)
        contents = model.dump() if same else None
        if contents is None:
            raise ValueError(f"model must be a {self.model!r} that has learned something, got {model!r}.")
        with self._lock:
            mine = self._about(self._home.members)
            odd = [name for name in ("features", "outputs", "names") if mine[name] != contents[name]]
            if self._home.members is not None and odd:
                raise ValueError(
                    f"model must have {odd[0]} = {mine[odd[0]]} like the other models of the fleet, got "
                    f"{contents[odd[0]]}."
                )
            self._put([key], contents, [(contents["learned"], contents["largest"])])

    def items(self) -> Iterator[tuple[Hashable, OnlineRegressor]]:
        """Yield each key with a copy of its model."""
        return ((key, self[key]) for key in self)

    def __repr__(self) -> str:
        return f"Fleet({self.model!r}, {len(self)} models)"

    def _repr_html_(self) -> str:
        return fleet_html(self)

    # Saving

    def save(self, path: str | Path, *, progress: bool = False) -> None:
        """Write all models to one file. A crash leaves no partial file. Keys must be strings or whole numbers."""
        write_atomically(path, self._chunks(progress))

    @classmethod
    def load(cls, path: str | Path, *, threads: int | None = None, progress: bool = False, keep: int = 10_000) -> Self:
        """Read a fleet from a file of `save`, or open a store. Untrusted files are safe to open."""
        if is_store(path):
            model, compact = stored_model(path)
            return cls(model, threads=threads, store=path, keep=keep, compact=compact)
        try:
            return cls.from_bytes(Path(path).read_bytes(), threads=threads, progress=progress)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from None

    def to_bytes(self, *, progress: bool = False) -> bytes:
        """Return the bytes that `save` writes."""
        return b"".join(self._chunks(progress))

    def _chunks(self, progress: bool) -> list[Any]:
        with self._lock:
            keys = list(self._home)
            records = shown(self._home.to_bytes(keys, self._single), len(keys), "saving", show=progress)
            about: Contents = {"model": describe(self.model), "compact": self._home.compact}
            if (members := self._home.members) is not None and keys:
                schema = members.schemas[self._home.compact]
                about |= self._about(members) | {"schema": json.loads(schema.text)}
            return fleet_file.chunks(about, keys, records)

    @classmethod
    def from_bytes(cls, data: bytes, *, threads: int | None = None, progress: bool = False) -> Self:
        """Return a fleet from the bytes of `to_bytes`. Raise a ModelFileError if they are not valid."""
        header, keys, records = fleet_file.read(data)
        with as_model_file_error():
            model = rebuild(header["model"])
            model.check()
        fleet = cls(model, threads=threads, compact=header.get("compact") is True)
        return fleet.put_records(header, keys, records, progress) if keys else fleet

    def put_records(self, header: Contents, keys: list[Hashable], records: Iterable[bytes], progress: bool) -> Self:
        """Add the models of a file with a checked header."""
        with as_model_file_error():
            members = start_members(self.model, header["features"], header["outputs"])
            members.schemas[self._home.compact].check_same(Schema.parse(header["schema"]))
            self._put(keys, header, shown(records, len(keys), "loading", show=progress), members)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: the keys and the records of their models."""
        if isinstance(self._home, Stored):
            raise TypeError(
                f"a fleet with a store cannot be copied. Copy the file {self._home.store.path} after commit."
            )
        with self._lock:
            own = {name: value for name, value in vars(self).items() if name != "_home"}
            keys = list(self._home)
            records = list(self._home.to_bytes(keys, self._single))
            return own | {"contents": (keys, self._about(self._home.members), records), "compact": self._home.compact}

    def __setstate__(self, own: dict[str, Any]) -> None:
        contents, self._home = own.pop("contents"), Memory(own.pop("compact"))
        vars(self).update(own)
        self._put(*contents)

    # Internals

    @property
    def _width(self) -> int | None:
        return None if self._home.members is None else self._home.members.features

    def _about(self, members: Members | None) -> Contents:
        names = [] if self._names is None else [str(name) for name in self._names]
        features, outputs = (0, 0) if members is None else (members.features, members.outputs)
        return {"features": features, "outputs": outputs, "single": self._single, "names": names}

    def _remember(self, about: Contents) -> None:
        self._single = about["single"]
        self._names = np.array(about["names"], dtype=object) if about["names"] else None

    def _events(self, keys: Sequence[Hashable], X: Any, y: Any) -> tuple[Members, Sequence[Hashable], Array, Array]:
        """Return the members and the checked rows. The first rows determine the number of columns."""
        values, names = frames.read(X, self._names, owner=frames.FLEET)
        y, width = frames.target(y), self._width
        if values is None and self.model.features_optional:
            values, width = no_features(y), width or 0
        values, y = check_Xy(values, y, width=width, owner="the fleet")
        outputs = 1 if y.ndim == 1 else y.shape[1]
        members = self._home.members
        if members is not None and ((y.ndim == 1) != self._single or outputs != members.outputs):
            expected = "(n,)" if self._single else f"(n, {members.outputs})"
            raise ValueError(f"y must have shape {expected} as before, got {y.shape}.")
        keys = self._home.checked(listed(keys, len(values)))
        if members is None:
            members = start_members(self.model, values.shape[1], outputs)
            self._single, self._names = y.ndim == 1, names
            self._home.adopt(members, self._about(members))
        return members, keys, values, y.reshape(len(y), outputs)

    def _put(
        self, keys: Sequence[Hashable], about: Contents, states: Iterable[State], members: Members | None = None
    ) -> None:
        """Load the states of these keys. If one is invalid, no key is added."""
        if not keys:
            return
        members = members or self._home.members or start_members(self.model, about["features"], about["outputs"])
        about = {name: about[name] for name in ABOUT}
        self._home.put(members, about, self._home.checked(keys), states)
        self._remember(about)

    def _name(self, keys: Sequence[Hashable], rows: Any) -> Callable[[int], str]:
        return lambda i: f"the model of the key {taken(keys, rows)[i]!r}"
