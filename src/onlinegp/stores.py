"""Stores of models by key: opened to go on with, or only read, also while another process writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.files.store import RESTORE, Key, Store
from onlinegp.homes import TYPES, Stored
from onlinegp.keyed import from_bytes
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild
from onlinegp.models.saving import ABOUT, check_about, only
from onlinegp.state import Contents, Schema


def opened(path: str | Path | Store, keep: int, model: OnlineRegressor, compact: bool) -> tuple[Stored, Contents]:
    """Return the home of the models in a store, and what is known of their events; another model is refused."""
    store, about = path if isinstance(path, Store) else Store(path), {"single": True, "names": []}
    try:
        home, known, events = Stored(store, keep, compact), store.asked("model"), store.asked("events")
        if store.count and (known is None or events is None):
            raise ModelFileError(f"{store.path}: it is damaged: it does not say what its models are. {RESTORE}")
        if known is None:
            store.tell("model", describe(model))
            store.tell("compact", compact)
        elif known != describe(model):
            raise ValueError(f"{store.path} holds models of another kind than {model!r}. Open it with Fleet.load.")
        elif bool(store.asked("compact")) != compact:
            raise ValueError(
                f"{store.path} holds models with compact={not compact}, got compact={compact}. Open it with Fleet.load."
            )
        elif events is not None:
            with _described(store):
                only(events, *ABOUT)
                check_about(events)
                members = model.start_many(events["features"], events["outputs"])
                members.schemas[compact].check_same(Schema.parse(store.asked("schema")))
                home.adopt(members, events)
                about = events
    except BaseException:
        store.close()
        raise
    return home, about


# A store that is only read: what was committed, also while another process writes


def stored_model(path: str | Path) -> tuple[OnlineRegressor, bool]:
    """Return the model that all keys of a store started from, and whether their states are compact."""
    with closing(Store(path, write=False)) as store:
        return _model(store), bool(store.asked("compact"))


def stored_one(path: str | Path, key: str) -> tuple[OnlineRegressor, Any]:
    """Return the model of one key of a store, and what was kept beside all of them, None if there was nothing.

    A key of digits is found as text or as a number.
    """
    with closing(Store(path, write=False)) as store:
        digits = key.removeprefix("-").isdecimal() and len(key) < 20
        names: list[Key] = [key, *([int(key)] if digits and -(1 << 63) <= int(key) < 1 << 63 else [])]
        found = store.get(names)
        if not found:
            raise ValueError(f"no model in {path} has the key {key!r}.")
        (_, state), about, model = found[key if key in found else names[-1]], store.asked("events"), _model(store)
        with _described(store):
            only(about, *ABOUT)
            check_about(about)
            return from_bytes(model, state, about["names"]), store.asked("note")


def stored_place(store: Store) -> tuple[OnlineRegressor, Any] | None:
    """Return the model of a store and what was kept beside the models, None if nothing was ever committed to it."""
    return None if store.asked("model") is None else (_model(store), store.asked("note"))


def stored_facts(path: str | Path) -> dict[str, Any]:
    """Return the number of keys in a store, their type, and some of them."""
    with closing(Store(path, write=False)) as store:
        types = " and ".join(sorted(TYPES[kind] for kind in store.types()))
        first = [key for key, _ in zip(store, range(5), strict=False)]
        return {"models": store.count, "type of keys": types, "first keys": first}


def _model(store: Store) -> OnlineRegressor:
    described = store.asked("model")
    with _described(store):
        model = rebuild(described)
        model.check()
    return model


@contextmanager
def _described(store: Store) -> Iterator[None]:
    """Whatever a forged store can cause is a ModelFileError that names it, and says what to do."""
    try:
        with as_model_file_error():
            yield
    except ModelFileError as error:
        text = str(error)
        raise ModelFileError(text if str(store.path) in text else f"{store.path}: {text} {RESTORE}") from None
