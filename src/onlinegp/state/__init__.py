"""What a learner keeps from one row to the next: its fields, by which it is dumped, checked and loaded."""

from onlinegp.state.contents import Contents, Values, WithFields, check_contents, dump_contents, load_contents
from onlinegp.state.fields import (
    Field,
    Fields,
    array,
    data,
    flags,
    integer,
    integers,
    learner,
    number,
    points,
    text,
    triangle,
)

__all__ = [
    "Contents",
    "Field",
    "Fields",
    "Values",
    "WithFields",
    "array",
    "check_contents",
    "data",
    "dump_contents",
    "flags",
    "integer",
    "integers",
    "learner",
    "load_contents",
    "number",
    "points",
    "text",
    "triangle",
]
