"""The compiled module, where it was built: native/bindings.cpp says what is in it."""

from typing import Any

def __getattr__(name: str) -> Any: ...
