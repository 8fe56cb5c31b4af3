"""Hook for DeepSpeed's PipelineEngine: `hook(engine)` after deepspeed.initialize, on each rank.

The engine looks its instructions up in a table of its class; the hook gives this one engine its own copy, with
forward and backward wrapped. DeepSpeed says in which buffer an op works, not which microbatch it is: both forwards
and backwards go through the microbatches in order, so they are counted. The step that is told is the schedule that
train_batch runs: gradient reduction and optimizer are in it. eval_batch is told as evaluation.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Callable

from .client import BACKWARD, FORWARD, PerseusClient
from .hooking import Hook, HookError, argument, needed, number

__all__ = ["Hook", "HookError", "hook", "ranks_of", "spec_of"]

_WHAT = "a deepspeed.runtime.pipe.engine.PipelineEngine"


def hook(
    engine: Any,
    client: PerseusClient | None = None,
    *,
    spec: dict[str, Any] | None = None,
    **client_arguments: Any,
) -> Hook:
    """Tells the client of every forward, backward and step of the engine.

    Without a client one is made with client_arguments and with what the engine says of ranks, degrees and
    microbatches; spec adds to that and wins. Without a job id nothing is hooked.

    Raises HookError if the engine has not what is needed, ValueError for arguments that PerseusClient refuses.
    """
    result = Hook(client, logging.getLogger("perseus_client"))
    table = needed(engine, "_INSTRUCTION_MAP", _WHAT)
    execute = needed(engine, "_exec_schedule", _WHAT)
    kinds = {kind.__name__: kind for kind in table}
    for name in ("ForwardPass", "BackwardPass"):
        if name not in kinds:
            raise HookError(f"_INSTRUCTION_MAP has no {name}: {_WHAT} is expected")
    if client is None:
        arguments = ranks_of(engine)
        arguments.update(client_arguments)
        client = PerseusClient(spec={**spec_of(engine), **(spec or {})}, **arguments)
        result.own(client)
    if not client.enabled:
        return result

    count = {"ForwardPass": 0, "BackwardPass": 0}
    wrapped_table = dict(table)
    for name, instruction in (("ForwardPass", FORWARD), ("BackwardPass", BACKWARD)):
        wrapped_table[kinds[name]] = _told(client, table[kinds[name]], client.instruction(instruction), count, name)
    schedule_of = argument(execute, "pipe_schedule")

    @functools.wraps(execute)
    def wrapped_execute(*args: Any, **kwargs: Any) -> Any:
        for name in count:
            count[name] = 0
        client.begin_step(_evaluates(schedule_of(args, kwargs)))
        try:
            return execute(*args, **kwargs)
        finally:
            client.end_step()

    result.replace(engine, "_INSTRUCTION_MAP", wrapped_table)
    result.replace(engine, "_exec_schedule", wrapped_execute)
    return result


def ranks_of(engine: Any) -> dict[str, Any]:
    """The engine's ranks, as arguments of PerseusClient."""
    grid = getattr(engine, "grid", None)
    return {
        "pp_rank": _ask(grid, "get_pipe_parallel_rank", number(getattr(engine, "stage_id", None), 0)),
        "dp_rank": _ask(grid, "get_data_parallel_rank", 0),
        "tp_rank": _ask(grid, "get_slice_parallel_rank", 0),
    }


def spec_of(engine: Any) -> dict[str, Any]:
    """What the engine says of the job: degrees, microbatches, and that it runs 1F1B."""
    grid = getattr(engine, "grid", None)
    return {
        "pp": _ask(grid, "get_pipe_parallel_world_size", number(getattr(engine, "num_stages", None), 1)),
        "dp": _ask(grid, "get_data_parallel_world_size", 1),
        "tp": _ask(grid, "get_slice_parallel_world_size", 1),
        "microbatches": number(getattr(engine, "micro_batches", None), 1),
        "schedule": "1f1b",
    }


def _ask(grid: Any, name: str, default: int) -> int:
    method = getattr(grid, name, None)
    return default if method is None else number(method(), default)


def _evaluates(schedule: Any) -> bool:
    return any(kind.__name__ == "InferenceSchedule" for kind in type(schedule).__mro__)


def _told(
    client: PerseusClient, function: Callable[..., Any], instruction: int, count: dict[str, int], name: str
) -> Callable[..., Any]:
    """The table's plain function (engine, buffer_id), which the engine binds to itself at each instruction."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        microbatch = count[name]
        count[name] = microbatch + 1
        client.begin_op(instruction, 0, microbatch)
        try:
            return function(*args, **kwargs)
        finally:
            client.end_op()

    return wrapped
