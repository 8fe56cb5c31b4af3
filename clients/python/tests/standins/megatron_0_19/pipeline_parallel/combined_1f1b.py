"""The op that is a forward and a backward in one another; signature as in megatron.core 0.19."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any


def run_combined(pairs: list[tuple[Any, Any, int, int]]) -> None:
    """Calls it by its bare name, as the schedules here do: (f_model, b_model, chunk, microbatch)."""
    for f_model, b_model, chunk, microbatch in pairs:
        combined_forward_backward_step(
            None,
            None,
            f_model,
            8,
            None,
            [],
            b_model,
            None,
            None,
            None,
            None,
            f_model_chunk_id=chunk,
            current_microbatch=microbatch,
        )


def combined_forward_backward_step(
    forward_step_func: Any,
    data_iterator: Any,
    f_model: Any,
    num_microbatches: Any,
    input_tensor: Any,
    forward_data_store: Any,
    b_model: Any,
    b_input_tensor: Any,
    b_output_tensor: Any,
    b_output_tensor_grad: Any,
    config: Any,
    f_model_chunk_id: Any = None,
    pre_forward: Any = None,
    pre_backward: Any = None,
    post_forward: Any = None,
    post_backward: Any = None,
    collect_non_loss_data: bool = False,
    checkpoint_activations_microbatch: Any = None,
    is_first_microbatch: bool = False,
    current_microbatch: Any = None,
    encoder_decoder_xattn: bool = False,
) -> Any:
    with nullcontext():
        return None, None, None
