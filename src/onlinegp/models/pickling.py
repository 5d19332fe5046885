"""Copy and pickle models by their learned contents."""

from __future__ import annotations

from copy import copy
from typing import Any

from onlinegp.models.start import start_learner
from onlinegp.state import described_from_bytes, described_to_bytes


class Pickled:
    """A model that can be copied and pickled."""

    _lock: Any
    _learner: Any
    _health: Any
    _learned_with: dict[str, Any]
    dump: Any

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: the learned contents instead of the learner."""
        with self._lock:
            own = dict(vars(self)) | {"_health": copy(self._health), "_recent": None}
            contents = self.dump()
            own["_learner"] = None if contents is None else described_to_bytes("", self._learner, contents)
            return own

    def __setstate__(self, own: dict[str, Any]) -> None:
        data = own.pop("_learner", None)
        vars(self).update(own)
        if data is not None:  # parameters that were set after the start take effect at the next fit
            contents = described_from_bytes(data)[1] | {"names": []}
            model: Any = type(self)(**self._learned_with)
            self._learner, _, _ = start_learner(model, contents["features"], contents["outputs"], contents)
