"""Hook for Megatron-LM, also under NeMo and Megatron-Bridge: `hook()` before training starts, on each rank.

Replaces attributes of the module megatron.core.pipeline_parallel.schedules at run time, which looks its functions up
by name there at each step; files stay as they are. A backward is told neither chunk nor microbatch, so what a
forward returned is remembered until the backward gets the same object. With overlap_moe_expert_parallel_comm a
forward and a backward run layer by layer in one another: they are told as one op, `overlap`.
"""

from __future__ import annotations

import functools
import importlib
import logging
from typing import Any, Callable

from . import environment
from .client import BACKWARD, FORWARD, OVERLAP, PerseusClient
from .hooking import Arguments, Hook, HookError, Keywords, argument, has_parameter, needed, number
from .wire import NO_MICROBATCH

__all__ = ["Hook", "HookError", "hook", "ranks_of", "spec_of"]

_PACKAGE = "megatron.core"
_WHAT = "megatron.core.pipeline_parallel.schedules"
_STEPS = (
    "forward_backward_no_pipelining",
    "forward_backward_pipelining_without_interleaving",
    "forward_backward_pipelining_with_interleaving",
)


def hook(
    client: PerseusClient | None = None,
    *,
    spec: dict[str, Any] | None = None,
    package: str = _PACKAGE,
    **client_arguments: Any,
) -> Hook:
    """Tells the client of every forward, backward and step of the schedules.

    Call it before training starts: the training loop fetches a schedule once. Without a client one is made in the
    first step, when Megatron knows its ranks, with client_arguments and with what Megatron says of ranks, degrees
    and microbatches; spec adds to that and wins. Without a job id nothing is hooked. package is where megatron.core
    is imported from.

    Raises HookError if the modules are not there or have not what is needed.
    """
    logger = logging.getLogger("perseus_client")
    result = Hook(client, logger)
    if client is None and client_arguments.get("job") is None and environment.job() is None:
        logger.info("Perseus is off: no job id; set PERSEUS_JOB")
        return result
    if client is not None and not client.enabled:
        return result
    try:
        schedules = importlib.import_module(package + ".pipeline_parallel.schedules")
        parallel_state = importlib.import_module(package + ".parallel_state")
    except ImportError as error:
        raise HookError(f"{package} can't be imported: {error}") from error
    try:
        combined: Any = importlib.import_module(package + ".pipeline_parallel.combined_1f1b")
    except ImportError:
        combined = None  # before 0.14

    teller = _Teller(result, parallel_state, spec or {}, client_arguments, logger)
    forward = needed(schedules, "forward_step", _WHAT)
    backward = needed(schedules, "backward_step", _WHAT)
    steps = {name: needed(schedules, name, _WHAT) for name in _STEPS}
    result.replace(schedules, "forward_step", teller.forward(forward))
    result.replace(schedules, "backward_step", teller.backward(backward))
    if hasattr(schedules, "backward_step_multimodule"):
        result.replace(schedules, "backward_step_multimodule", teller.backward(schedules.backward_step_multimodule))
    if combined is not None and hasattr(combined, "combined_forward_backward_step"):
        result.replace(
            combined,
            "combined_forward_backward_step",
            teller.combined(combined.combined_forward_backward_step),
        )
    for name, function in steps.items():
        result.replace(schedules, name, teller.step(function))
    return result


def ranks_of(parallel_state: Any) -> dict[str, Any]:
    """Megatron's ranks, as arguments of PerseusClient."""
    return {
        "pp_rank": _ask(parallel_state, "get_pipeline_model_parallel_rank", 0),
        "dp_rank": _ask(parallel_state, "get_data_parallel_rank", 0),
        "tp_rank": _ask(parallel_state, "get_tensor_model_parallel_rank", 0),
        "cp_rank": _ask(parallel_state, "get_context_parallel_rank", 0),
        "ep_rank": _ask(parallel_state, "get_expert_model_parallel_rank", 0),
    }


def spec_of(parallel_state: Any, microbatches: int) -> dict[str, Any]:
    """What Megatron says of the job: degrees, chunks and the schedule."""
    chunks = _ask(parallel_state, "get_virtual_pipeline_model_parallel_world_size", 1)
    return {
        "pp": _ask(parallel_state, "get_pipeline_model_parallel_world_size", 1),
        "dp": _ask(parallel_state, "get_data_parallel_world_size", 1),
        "tp": _ask(parallel_state, "get_tensor_model_parallel_world_size", 1),
        "cp": _ask(parallel_state, "get_context_parallel_world_size", 1),
        "ep": _ask(parallel_state, "get_expert_model_parallel_world_size", 1),
        "microbatches": microbatches,
        "chunks": chunks,
        "schedule": "interleaved-1f1b" if chunks > 1 else "1f1b",
    }


def _ask(parallel_state: Any, name: str, default: int) -> int:
    function = getattr(parallel_state, name, None)
    return default if function is None else number(function(), default)


def _key(output: Any) -> int | None:
    """What tells one forward's output from another: the tensor's id, of several the first one's."""
    while isinstance(output, (list, tuple, dict)):
        if not output:
            return None
        output = next(iter(output.values())) if isinstance(output, dict) else output[0]
    return None if output is None else id(output)


class _Teller:
    """Wraps Megatron's functions and keeps what one step needs."""

    def __init__(
        self,
        result: Hook,
        parallel_state: Any,
        spec: dict[str, Any],
        client_arguments: dict[str, Any],
        logger: logging.Logger,
    ) -> None:
        self._hook = result
        self._parallel_state = parallel_state
        self._spec = spec
        self._client_arguments = client_arguments
        self._logger = logger
        self._failed = False
        self._backwards = 0
        self._interleaved = False
        # Chunk and microbatch of forwards whose backward is to come. The schedule keeps the tensors alive until
        # then, so that no other one has the same id.
        self._forwards: dict[int, tuple[int, int]] = {}

    def step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A schedule function: one step, or a pass over it that Megatron repeats."""
        forward_only_of = argument(function, "forward_only", False)
        microbatches_of = argument(function, "num_microbatches", 1)

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            evaluation = bool(forward_only_of(args, kwargs))
            client = self._hook.client
            if client is None and not self._failed and not evaluation:
                client = self._new_client(number(microbatches_of(args, kwargs), 1))
            if client is None:
                return function(*args, **kwargs)
            self._forwards.clear()
            self._backwards = 0
            self._interleaved = self._chunks() > 1
            client.begin_step(evaluation)
            try:
                return function(*args, **kwargs)
            finally:
                client.end_step()
                self._forwards.clear()

        return wrapped

    def forward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """forward_step."""
        chunk_of = self._chunk_reader(function)
        microbatch_of = argument(function, "current_microbatch")

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            client = self._hook.client
            if client is None:
                return function(*args, **kwargs)
            chunk = chunk_of(args, kwargs)
            microbatch = number(microbatch_of(args, kwargs), NO_MICROBATCH)
            client.begin_op(client.instruction(FORWARD), chunk, microbatch)
            try:
                output = function(*args, **kwargs)
            finally:
                client.end_op()
            # (output, number of tokens); the bare output up to 0.6.
            key = _key(output[0] if isinstance(output, tuple) and len(output) == 2 else output)
            if key is not None:
                self._forwards[key] = (chunk, microbatch)
            return output

        return wrapped

    def backward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """backward_step and backward_step_multimodule."""
        output_of = argument(function, "output_tensor")

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            client = self._hook.client
            if client is None:
                return function(*args, **kwargs)
            key = _key(output_of(args, kwargs))
            found = self._forwards.pop(key, None) if key is not None else None
            if found is None:  # an output that was replaced: without chunks the backwards' order says which it is
                found = (0, NO_MICROBATCH if self._interleaved else self._backwards)
            self._backwards += 1
            client.begin_op(client.instruction(BACKWARD), *found)
            try:
                return function(*args, **kwargs)
            finally:
                client.end_op()

        return wrapped

    def combined(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """combined_forward_backward_step: a forward, a backward, or both in one another."""
        forward_model_of = argument(function, "f_model")
        backward_model_of = argument(function, "b_model")
        chunk_of = argument(function, "f_model_chunk_id")
        microbatch_of = argument(function, "current_microbatch")

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            client = self._hook.client
            if client is None:
                return function(*args, **kwargs)
            forward = forward_model_of(args, kwargs) is not None
            backward = backward_model_of(args, kwargs) is not None
            chunk, microbatch = 0, NO_MICROBATCH
            if forward:
                chunk = number(chunk_of(args, kwargs), 0)
                microbatch = number(microbatch_of(args, kwargs), NO_MICROBATCH)
            name = FORWARD if forward else BACKWARD
            if forward and backward and OVERLAP in client.instructions:
                name = OVERLAP
            client.begin_op(client.instruction(name), chunk, microbatch)
            try:
                return function(*args, **kwargs)
            finally:
                client.end_op()

        return wrapped

    def _chunks(self) -> int:
        return _ask(self._parallel_state, "get_virtual_pipeline_model_parallel_world_size", 1)

    def _chunk_reader(self, function: Callable[..., Any]) -> Callable[[Arguments, Keywords], int]:
        if has_parameter(function, "vp_stage"):
            stage_of = argument(function, "vp_stage")
            return lambda args, kwargs: number(stage_of(args, kwargs), 0)
        # Up to 0.12 the schedules keep the chunk in parallel_state, and from 0.13 on only in vp_stage.
        return lambda _args, _kwargs: _ask(self._parallel_state, "get_virtual_pipeline_model_parallel_rank", 0)

    def _new_client(self, microbatches: int) -> PerseusClient | None:
        """The client, made in the first training step; None, and never tried again, if that fails."""
        try:
            arguments = ranks_of(self._parallel_state)
            arguments["instructions"] = (FORWARD, BACKWARD, OVERLAP)
            arguments.update(self._client_arguments)
            spec = {**spec_of(self._parallel_state, microbatches), **self._spec}
            client = PerseusClient(spec=spec, **arguments)
        except Exception as error:
            self._failed = True
            self._logger.warning("Perseus: %s; training goes on without", error)
            return None
        self._hook.own(client)
        return client
