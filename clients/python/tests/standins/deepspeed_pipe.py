"""Stands in for deepspeed.runtime.pipe 0.19: names, signatures and the table of instructions are its, little else."""

from __future__ import annotations

from collections.abc import Iterator
from types import MethodType
from typing import Any


class PipeInstruction:
    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs


class ForwardPass(PipeInstruction): ...


class BackwardPass(PipeInstruction): ...


class SendGrad(PipeInstruction): ...


class OptimizerStep(PipeInstruction): ...


class PipeSchedule:
    def __init__(self, micro_batches: int, stages: int, stage_id: int) -> None:
        self.micro_batches, self.stages, self.stage_id = micro_batches, stages, stage_id

    def num_pipe_buffers(self) -> int:
        return max(2, min(self.stages - self.stage_id, self.micro_batches))

    def __iter__(self) -> Iterator[list[PipeInstruction]]:
        raise NotImplementedError


class TrainSchedule(PipeSchedule):
    def __iter__(self) -> Iterator[list[PipeInstruction]]:
        warmup = min(self.stages - self.stage_id - 1, self.micro_batches)
        buffers = self.num_pipe_buffers()
        for m in range(self.micro_batches + warmup):
            commands: list[PipeInstruction] = []
            if m < self.micro_batches:
                commands.append(ForwardPass(buffer_id=m % buffers))
            if m >= warmup:
                commands.append(BackwardPass(buffer_id=(m - warmup) % buffers))
                commands.append(SendGrad(buffer_id=(m - warmup) % buffers))
            yield commands
        yield [OptimizerStep()]


class InferenceSchedule(PipeSchedule):
    def __iter__(self) -> Iterator[list[PipeInstruction]]:
        for m in range(self.micro_batches):
            yield [ForwardPass(buffer_id=m % 2)]


class PipelineParallelGrid:
    def get_pipe_parallel_rank(self) -> int:
        return 1

    def get_pipe_parallel_world_size(self) -> int:
        return 4

    def get_data_parallel_rank(self) -> int:
        return 1

    def get_data_parallel_world_size(self) -> int:
        return 2

    def get_slice_parallel_rank(self) -> int:
        return 0

    def get_slice_parallel_world_size(self) -> int:
        return 1


class PipelineEngine:
    def __init__(self) -> None:
        self.grid = PipelineParallelGrid()
        self.stage_id, self.num_stages, self.micro_batches = 1, 4, 6
        self.done: list[tuple[str, int]] = []

    def train_batch(self, data_iter: Any = None) -> list[tuple[str, int]]:
        self.done = []
        self._exec_schedule(TrainSchedule(self.micro_batches, self.num_stages, self.stage_id))
        return self.done

    def eval_batch(self, data_iter: Any, return_logits: bool = False) -> list[tuple[str, int]]:
        self.done = []
        self._exec_schedule(InferenceSchedule(self.micro_batches, self.num_stages, self.stage_id))
        return self.done

    def _exec_forward_pass(self, buffer_id: int) -> None:
        self.done.append(("F", buffer_id))

    def _exec_backward_pass(self, buffer_id: int) -> None:
        self.done.append(("B", buffer_id))

    def _exec_send_grads(self, buffer_id: int) -> None:
        pass

    def _exec_optimizer_step(self, lr_kwargs: Any = None) -> None:
        self.done.append(("O", 0))

    _INSTRUCTION_MAP: dict[type[PipeInstruction], Any] = {
        OptimizerStep: _exec_optimizer_step,
        ForwardPass: _exec_forward_pass,
        BackwardPass: _exec_backward_pass,
        SendGrad: _exec_send_grads,
    }

    def _exec_schedule(self, pipe_schedule: Any) -> None:
        for step_cmds in pipe_schedule:
            for cmd in step_cmds:
                self._exec_instr = MethodType(self._INSTRUCTION_MAP[type(cmd)], self)
                self._exec_instr(**cmd.kwargs)
