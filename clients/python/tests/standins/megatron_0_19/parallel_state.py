"""Ranks of one process, set by the test."""

from __future__ import annotations

sizes = {"pipeline_model": 4, "tensor_model": 2, "context": 1, "data": 2, "expert_model": 1}
ranks = {"pipeline_model": 1, "tensor_model": 1, "context": 0, "data": 1, "expert_model": 0}
virtual_size: int | None = None
virtual_rank: int | None = 0  # from 0.13 on the schedules leave it alone


def get_pipeline_model_parallel_world_size() -> int:
    return sizes["pipeline_model"]


def get_pipeline_model_parallel_rank() -> int:
    return ranks["pipeline_model"]


def get_tensor_model_parallel_world_size() -> int:
    return sizes["tensor_model"]


def get_tensor_model_parallel_rank() -> int:
    return ranks["tensor_model"]


def get_context_parallel_world_size() -> int:
    return sizes["context"]


def get_context_parallel_rank() -> int:
    return ranks["context"]


def get_data_parallel_world_size(with_context_parallel: bool = False) -> int:
    return sizes["data"]


def get_data_parallel_rank(with_context_parallel: bool = False) -> int:
    return ranks["data"]


def get_expert_model_parallel_world_size() -> int:
    return sizes["expert_model"]


def get_expert_model_parallel_rank() -> int:
    return ranks["expert_model"]


def get_virtual_pipeline_model_parallel_world_size() -> int | None:
    return virtual_size


def get_virtual_pipeline_model_parallel_rank() -> int | None:
    return virtual_rank


def set_virtual_pipeline_model_parallel_rank(rank: int) -> None:
    global virtual_rank
    virtual_rank = rank
