"""What a job says of itself: the fields that the server's job specification has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict


class JobSpec(TypedDict, total=False):
    """A job's description, the same on all of its ranks.

    Needed: pp and microbatches. world_size is WORLD_SIZE if left out. Degrees left out are 1.
    """

    name: str
    pp: int  # degrees of pipeline, data, tensor, context and expert parallelism
    dp: int
    tp: int
    cp: int
    ep: int
    world_size: int
    schedule: str  # a name that `perseus schedules` lists; 1f1b if left out
    schedule_csv: str  # the order of actions in PyTorch's CSV, instead of a name
    microbatches: int
    chunks: int
    forward_only: bool
    gpu: str
    model_key: str  # names what jobs with the same ops have in common
    blocking_power_w: float
    profiling_budget: float
    metadata: dict[str, str]
    report_every: int
    no_profiling: bool
    guardrail_percent: float
    guardrail_window: int


FIELDS = frozenset(JobSpec.__annotations__)
_DEGREES = ("pp", "dp", "tp", "cp")
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_job(job: str) -> str:
    """The id itself. Raises ValueError if no server would take it."""
    if not _JOB_ID.fullmatch(job):
        raise ValueError(
            f"job {job[:140]!r}: an id has 1 to 128 letters, digits, '.', '_' and '-' and begins with a letter or digit"
        )
    return job


def complete(spec: Mapping[str, Any], world_size: int | None) -> dict[str, Any]:
    """The spec as it is sent: a copy with world_size filled in where it was left out.

    world_size is what the environment says, None if it says nothing: then it is the product of the degrees.
    Raises ValueError for unknown and missing fields and for numbers that contradict each other.
    """
    unknown = sorted(set(spec) - FIELDS)
    if unknown:
        raise ValueError(f"spec: unknown field {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}")
    full = dict(spec)
    for name in ("pp", "microbatches"):
        if name not in full:
            raise ValueError(f"spec: {name} is missing")
    for name in (*_DEGREES, "ep", "microbatches", "chunks", "world_size"):
        value = full.get(name, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"spec: {name} {value!r}: not a whole number from 1")
    product = 1
    for name in _DEGREES:
        product *= full.get(name, 1)
    full.setdefault("world_size", world_size if world_size is not None else product)
    if full["world_size"] != product:
        degrees = " · ".join(f"{name} {full.get(name, 1)}" for name in _DEGREES)
        raise ValueError(f"spec: world_size {full['world_size']}: the degrees {degrees} make {product}")
    return full


def check_rank(name: str, value: int | None, degree: int) -> int:
    """The rank within one kind of parallelism; 0 where none was given and there is one place only.

    degree is the number of places. Raises ValueError if the rank is missing though there are
    several places, or is none of them.
    """
    if value is None:
        if degree > 1:
            raise ValueError(f"{name} is missing: there are {degree} places, so it can't be guessed")
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} {value!r}: not a whole number from 0")
    if value >= degree:
        raise ValueError(f"{name} {value}: there are {degree} places, numbered from 0")
    return value
