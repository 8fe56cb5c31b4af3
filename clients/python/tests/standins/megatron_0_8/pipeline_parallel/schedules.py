"""Runs one rank's order of ops; signatures as in megatron.core 0.8. Interleaved, the chunk is in parallel_state."""

from __future__ import annotations

from typing import Any

from standins.megatron_0_8 import parallel_state
from standins.orders import Order, interleaved, one_f_one_b
from standins.tensors import Tensor


def get_forward_backward_func() -> Any:
    if parallel_state.get_pipeline_model_parallel_world_size() > 1:
        if parallel_state.get_virtual_pipeline_model_parallel_world_size() is not None:
            return forward_backward_pipelining_with_interleaving
        return forward_backward_pipelining_without_interleaving
    return forward_backward_no_pipelining


def forward_step(
    forward_step_func: Any,
    data_iterator: Any,
    model: Any,
    num_microbatches: Any,
    input_tensor: Any,
    forward_data_store: Any,
    config: Any,
    collect_non_loss_data: bool = False,
    checkpoint_activations_microbatch: Any = None,
    is_first_microbatch: bool = False,
    current_microbatch: Any = None,
) -> Any:
    output = forward_step_func(data_iterator, model)
    forward_data_store.append(output)
    return [output], 1


def backward_step(input_tensor: Any, output_tensor: Any, output_tensor_grad: Any, model_type: Any, config: Any) -> Any:
    assert isinstance(output_tensor[0], Tensor)
    return input_tensor


def _run(order: Order, forward_step_func: Any, data_iterator: Any, num_microbatches: int, forward_only: bool) -> Any:
    outputs: dict[tuple[int, int], Any] = {}
    store: list[Any] = []
    for kind, microbatch, chunk in order:
        if parallel_state.virtual_size is not None:
            parallel_state.set_virtual_pipeline_model_parallel_rank(chunk)
        if kind == "F":
            output, _ = forward_step(
                forward_step_func,
                data_iterator,
                None,
                num_microbatches,
                None,
                store,
                None,
                False,
                None,
                microbatch == 0,
                current_microbatch=microbatch,
            )
            outputs[microbatch, chunk] = output
            output[0].data = None  # as when the pipeline lets go of it: the object stays
        elif not forward_only:
            backward_step(None, outputs.pop((microbatch, chunk)), None, None, None)
    return store


def forward_backward_no_pipelining(
    *, forward_step_func: Any, data_iterator: Any, num_microbatches: int, forward_only: bool = False, **_: Any
) -> Any:
    order = one_f_one_b(1, 0, num_microbatches)
    return _run(order, forward_step_func, data_iterator, num_microbatches, forward_only)


def forward_backward_pipelining_without_interleaving(
    *, forward_step_func: Any, data_iterator: Any, num_microbatches: int, forward_only: bool = False, **_: Any
) -> Any:
    order = one_f_one_b(
        parallel_state.sizes["pipeline_model"], parallel_state.ranks["pipeline_model"], num_microbatches
    )
    return _run(order, forward_step_func, data_iterator, num_microbatches, forward_only)


def forward_backward_pipelining_with_interleaving(
    *, forward_step_func: Any, data_iterator: Any, num_microbatches: int, forward_only: bool = False, **_: Any
) -> Any:
    assert parallel_state.virtual_size is not None
    order = interleaved(
        parallel_state.sizes["pipeline_model"],
        parallel_state.ranks["pipeline_model"],
        num_microbatches,
        parallel_state.virtual_size,
    )
    return _run(order, forward_step_func, data_iterator, num_microbatches, forward_only)
