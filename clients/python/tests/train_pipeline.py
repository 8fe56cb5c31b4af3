"""Trains a small model as a pipeline on CPU with PyTorch's own schedules: a program, run on each rank by torchrun.

    torchrun --nproc-per-node 4 train_pipeline.py [--schedule 1f1b] [--dp 1] [--steps 5] …
    python train_pipeline.py --ranks 4 …

Prints, on the last stage of each pipeline, a line `loss STEP DP_RANK HEX` for each step, HEX being the mean loss of
the microbatches as an exact float, and at the end, on every rank, `weights RANK SHA256`. Two runs that compute the
same print the same. With PERSEUS_JOB set, and PERSEUS_AGENT_SOCKET where the agent is, the node's agent is told;
without, the hook does nothing. A rank that was told ends with `perseus RANK EVENTS DROPPED`.

--order prints `order RANK ACTION…`, what PyTorch says that the rank computes in a step. --eval-every N evaluates
after every N steps. --stretch-ms makes every op of stage s take about (s + 1) · MS milliseconds more, and its backward
twice that: time that changes no number.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining as pp
from torch.distributed.device_mesh import init_device_mesh

import perseus_client.pipelining

WIDTH = 32
BATCH_OF_MICROBATCH = 4
SCHEDULES: dict[str, Any] = {
    "gpipe": pp.ScheduleGPipe,
    "1f1b": pp.Schedule1F1B,
    "interleaved-1f1b": pp.ScheduleInterleaved1F1B,
    "looped-bfs": pp.ScheduleLoopedBFS,
    "interleaved-zero-bubble": pp.ScheduleInterleavedZeroBubble,
    "zbv": pp.ScheduleZBVZeroBubble,
}
CHUNKS = {"gpipe": 1, "1f1b": 1}


class Stretch(nn.Module):
    """Takes its time, in the forward and in the backward, and passes its input on unchanged."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def forward(self, x: Any) -> Any:
        if self.seconds:
            time.sleep(self.seconds)
            if x.requires_grad:
                x.register_hook(self._wait)
        return x

    def _wait(self, _: Any) -> None:
        time.sleep(2 * self.seconds)


def stage_module(index: int, stretch_s: float) -> nn.Module:
    """Layers of a stage, the same whichever rank and run makes them; later stages are wider, so they take longer."""
    torch.manual_seed(1000 + index)
    hidden = WIDTH * (index + 1)
    return nn.Sequential(
        nn.Linear(WIDTH, hidden), nn.Tanh(), nn.Linear(hidden, WIDTH), Stretch(stretch_s * (index + 1))
    )


def mean_loss(output: Any, target: Any) -> Any:
    return nn.functional.mse_loss(output, target)


def batch(step: int, dp_rank: int, microbatches: int) -> tuple[Any, Any]:
    """The same numbers on every rank of a pipeline, others in each step and pipeline."""
    generator = torch.Generator().manual_seed(7919 * step + dp_rank)
    size = (microbatches * BATCH_OF_MICROBATCH, WIDTH)
    return torch.randn(size, generator=generator), torch.randn(size, generator=generator)


def say(line: str) -> None:
    """One write a line, so that lines of several ranks stay whole."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def stages_of(rank: int, ranks: int, chunks: int, v_shaped: bool) -> list[int]:
    if v_shaped:
        return [rank, 2 * ranks - 1 - rank]
    return [rank + chunk * ranks for chunk in range(chunks)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedule", choices=sorted(SCHEDULES), default="1f1b")
    parser.add_argument("--dp", type=int, default=1, help="data-parallel pipelines")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--eval-every", type=int, default=0)
    parser.add_argument("--order", action="store_true")
    parser.add_argument("--stretch-ms", type=float, default=0.0)
    parser.add_argument("--device", help="name of the device for the agent, in place of LOCAL_RANK")
    parser.add_argument("--ranks", type=int, default=0, help="start as many ranks, on this machine")
    return parser.parse_args()


def start(ranks: int) -> bool:
    """Forks into ranks, after PyTorch has been imported once for all. True in a rank, False when all have ended.

    Ends the program with status 1 if one of them failed.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    children = []
    for rank in range(ranks):
        child = os.fork()
        if child == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            return True
        children.append(child)
    if any([os.waitpid(child, 0)[1] for child in children]):
        sys.exit(1)
    return False


def main() -> None:
    options = arguments()
    if options.ranks and not start(options.ranks):
        return
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    mesh = init_device_mesh("cpu", (options.dp, world // options.dp), mesh_dim_names=("dp", "pp"))
    pp_rank, ranks = mesh.get_local_rank("pp"), mesh["pp"].size()
    dp_rank, dp_group = mesh.get_local_rank("dp"), mesh.get_group("dp")

    chunks = CHUNKS.get(options.schedule, 2)
    mine = stages_of(pp_rank, ranks, chunks, options.schedule == "zbv")
    modules = [stage_module(index, options.stretch_ms / 1000) for index in mine]
    stages = [
        pp.PipelineStage(module, index, ranks * chunks, torch.device("cpu"), group=mesh.get_group("pp"))
        for module, index in zip(modules, mine)
    ]
    kind = SCHEDULES[options.schedule]
    schedule = kind(stages[0] if chunks == 1 else stages, options.microbatches, loss_fn=mean_loss)
    parameters = [parameter for module in modules for parameter in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    first, last = 0 in mine, ranks * chunks - 1 in mine

    hook = perseus_client.pipelining.hook(
        schedule,
        mesh=mesh,
        spec={"name": "train_pipeline", "model_key": f"train_pipeline-{options.schedule}"},
        device=options.device,
    )

    if options.order:
        actions = [str(action) for action in schedule.pipeline_order[pp_rank] if action is not None]
        say(f"order {dist.get_rank()} {' '.join(a for a in actions if 'REDUCE_GRAD' not in a)}")

    def run(run_schedule: Callable[..., Any], step: int) -> float:
        inputs, targets = batch(step, dp_rank, options.microbatches)
        losses: list[Any] = []
        given = (inputs,) if first else ()
        named = {"target": targets, "losses": losses} if last else {}
        run_schedule(*given, **named)
        return float(torch.stack(losses).detach().mean()) if losses else 0.0

    for step in range(options.steps):
        optimizer.zero_grad()
        loss = run(schedule.step, step)
        if options.dp > 1:
            for parameter in parameters:
                dist.all_reduce(parameter.grad, group=dp_group)
        optimizer.step()
        if last:
            say(f"loss {step} {dp_rank} {loss.hex()}")
        if options.eval_every and (step + 1) % options.eval_every == 0:
            loss = run(schedule.eval, 1_000_000 + step)
            if last:
                say(f"eval {step} {dp_rank} {loss.hex()}")

    digest = hashlib.sha256()
    for parameter in parameters:
        digest.update(parameter.detach().numpy().tobytes())
    say(f"weights {dist.get_rank()} {digest.hexdigest()}")
    if hook.client is not None and hook.client.enabled:
        client = hook.client
        say(f"perseus {dist.get_rank()} {client.sequence} {client.dropped}")
    hook.remove()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
