"""What a learner keeps from one row to the next: its fields, its contents by name, and its record, the bytes."""

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
    model,
    number,
    points,
    text,
    triangle,
)
from onlinegp.state.learner_record import (
    about_of,
    check_sizes,
    described_from_bytes,
    described_to_bytes,
    learner_from_bytes,
    learner_to_bytes,
    schema_of,
)
from onlinegp.state.record import Schema

__all__ = [
    "Contents",
    "Field",
    "Fields",
    "Schema",
    "Values",
    "WithFields",
    "about_of",
    "array",
    "check_contents",
    "check_sizes",
    "data",
    "described_from_bytes",
    "described_to_bytes",
    "dump_contents",
    "flags",
    "integer",
    "integers",
    "learner",
    "learner_from_bytes",
    "learner_to_bytes",
    "load_contents",
    "model",
    "number",
    "points",
    "schema_of",
    "text",
    "triangle",
]
