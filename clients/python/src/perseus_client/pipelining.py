"""Hook for torch.distributed.pipelining: `hook(schedule)` after the schedule is made, on each rank.

It wraps methods of the schedule and of its stages, on these objects only. Ops are F, B, I and W of PyTorch's
schedules; the chunk is the place of the stage among those of this rank. `schedule.eval` is told as evaluation. The
optimizer is yours: the step that is told is `schedule.step`, unless you open a longer one around it.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Callable

from .client import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PerseusClient
from .hooking import Arguments, Hook, HookError, Keywords, argument, needed, number
from .wire import NO_MICROBATCH

__all__ = ["Hook", "HookError", "hook", "instructions_of", "spec_of"]

_WHAT = "a schedule of torch.distributed.pipelining"

# Names that `perseus schedules` knows, by PyTorch's class.
_SCHEDULES = {
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleInterleaved1F1B": "interleaved-1f1b",
    "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleavedZeroBubble": "interleaved-zero-bubble",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipev",
}
_SPLIT = ("interleaved-zero-bubble", "zbv", "dualpipev")
_MESH_NAMES = ("dp", "tp", "cp", "ep")


def hook(
    schedule: Any,
    client: PerseusClient | None = None,
    *,
    mesh: Any = None,
    spec: dict[str, Any] | None = None,
    **client_arguments: Any,
) -> Hook:
    """Tells the client of every op and step of the schedule.

    Without a client one is made with client_arguments, and with what the schedule says: pipeline rank, degree,
    microbatches, chunks and name; spec adds to that and wins. mesh is the job's DeviceMesh: its dimensions named
    dp, tp, cp and ep give the other ranks and degrees. Without a job id nothing is hooked.

    Raises HookError if the schedule has not what is needed, ValueError for arguments that PerseusClient refuses.
    """
    result = Hook(client, logging.getLogger("perseus_client"))
    stages = _stages_of(schedule)
    if client is None:
        arguments: dict[str, Any] = {"pp_rank": number(getattr(stages[0], "group_rank", 0), 0)}
        full = spec_of(schedule)
        for name in _MESH_NAMES:
            if mesh is not None and name in (getattr(mesh, "mesh_dim_names", None) or ()):
                arguments[f"{name}_rank"] = mesh.get_local_rank(name)
                full[name] = mesh[name].size()
        full.update(spec or {})
        arguments["instructions"] = instructions_of(str(full.get("schedule", "")))
        arguments.update(client_arguments)
        client = PerseusClient(spec=full, **arguments)
        result.own(client)
    if not client.enabled:
        return result

    for chunk, stage in enumerate(stages):
        _hook_stage(result, client, stage, chunk)
    step = needed(schedule, "step", _WHAT)

    @functools.wraps(step)
    def wrapped_step(*args: Any, **kwargs: Any) -> Any:
        client.begin_step(not getattr(schedule, "_has_backward", True))
        try:
            return step(*args, **kwargs)
        finally:
            client.end_step()

    result.replace(schedule, "step", wrapped_step)
    return result


def spec_of(schedule: Any) -> dict[str, Any]:
    """What the schedule says of the job: pp, microbatches, chunks, and its name if Perseus knows it."""
    stages = _stages_of(schedule)
    spec: dict[str, Any] = {
        "pp": number(getattr(stages[0], "group_size", None), 1),
        "microbatches": number(getattr(schedule, "_n_microbatches", None), 1),
        "chunks": len(stages),
    }
    for kind in type(schedule).__mro__:
        if kind.__name__ in _SCHEDULES:
            spec["schedule"] = _SCHEDULES[kind.__name__]
            break
    return spec


def instructions_of(schedule: str) -> tuple[str, ...]:
    """The names of ops that a schedule of this name runs; all of them if Perseus does not know it."""
    if schedule in _SCHEDULES.values() and schedule not in _SPLIT:
        return (FORWARD, BACKWARD)
    return (FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT)


def _stages_of(schedule: Any) -> list[Any]:
    stages = getattr(schedule, "_stages", None)
    if stages:
        return list(stages)
    return [needed(schedule, "_stage", _WHAT)]


def _hook_stage(result: Hook, client: PerseusClient, stage: Any, chunk: int) -> None:
    forward = needed(stage, "forward_one_chunk", _WHAT)
    backward = needed(stage, "backward_one_chunk", _WHAT)
    weight = getattr(stage, "backward_weight_one_chunk", None)
    f, b = client.instruction(FORWARD), client.instruction(BACKWARD)
    full_of = argument(backward, "full_backward", True)
    # A client made by the user may know F and B only: then both halves of a split backward are told as B.
    known = client.instructions
    i = client.instruction(INPUT_GRADIENT) if INPUT_GRADIENT in known else b
    w = client.instruction(WEIGHT_GRADIENT) if WEIGHT_GRADIENT in known else b

    def forward_kind(_: Arguments, __: Keywords) -> int:
        return f

    def backward_kind(args: Arguments, kwargs: Keywords) -> int:
        return b if full_of(args, kwargs) else i

    def weight_kind(_: Arguments, __: Keywords) -> int:
        return w

    result.replace(
        stage, "forward_one_chunk", _told(client, forward, "fwd_chunk_id", forward_kind, chunk, lambda: True)
    )

    # In an evaluation the schedule calls these too, and they return at once: nothing runs.
    def trains() -> bool:
        return bool(getattr(stage, "has_backward", True))

    result.replace(stage, "backward_one_chunk", _told(client, backward, "bwd_chunk_id", backward_kind, chunk, trains))
    if weight is not None:
        result.replace(
            stage,
            "backward_weight_one_chunk",
            _told(client, weight, "bwd_chunk_id", weight_kind, chunk, trains),
        )


def _told(
    client: PerseusClient,
    method: Callable[..., Any],
    microbatch_name: str,
    kind: Callable[[Arguments, Keywords], int],
    chunk: int,
    runs: Callable[[], bool],
) -> Callable[..., Any]:
    microbatch_of = argument(method, microbatch_name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not runs():
            return method(*args, **kwargs)
        client.begin_op(kind(args, kwargs), chunk, number(microbatch_of(args, kwargs), NO_MICROBATCH))
        try:
            return method(*args, **kwargs)
        finally:
            client.end_op()

    return wrapped
