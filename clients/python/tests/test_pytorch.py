"""Trains with real PyTorch on CPU, with and without Perseus: the same numbers, and the ops that PyTorch ran.

Skipped where no PyTorch is. PERSEUS_TORCH_PYTHON names a Python that has it, if this one has not.
PERSEUS_TEST_AGENT_SOCKET names the socket of a real agent: then that is told in place of the one made here, and only
the numbers are compared.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from fake_agent import FakeAgent
from standins.orders import one_f_one_b

HERE = Path(__file__).parent
PYTHON = os.environ.get("PERSEUS_TORCH_PYTHON") or (sys.executable if find_spec("torch") else "")
REAL_AGENT = os.environ.get("PERSEUS_TEST_AGENT_SOCKET", "")
RANKS = 4
OPTIONS = ("--steps", "4", "--eval-every", "2")
NAMES = {"F": "forward", "B": "backward", "I": "input-gradient", "W": "weight-gradient"}

pytestmark = pytest.mark.skipif(not PYTHON, reason="no PyTorch: pip install torch, or set PERSEUS_TORCH_PYTHON")


def train(*options: str, ranks: int = RANKS, job: str = "", agent: str = "") -> list[str]:
    """The lines that the ranks printed, sorted."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "OMP_NUM_THREADS": "1"}
    environment.update(PERSEUS_JOB=job, PERSEUS_AGENT_SOCKET=agent)
    command = [PYTHON, str(HERE / "train_pipeline.py"), "--ranks", str(ranks), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return sorted(done.stdout.splitlines())


def numbers(lines: list[str]) -> list[str]:
    """Losses and weights: all that training computes."""
    return [line for line in lines if line.split()[0] in ("loss", "eval", "weights")]


@pytest.fixture(scope="module")
def plain() -> list[str]:
    """What training computes without Perseus."""
    return numbers(train(*OPTIONS))


def told(order: list[tuple[str, int, int]], evaluation: bool = False) -> list[str]:
    """What an agent hears of a step with these (kind, microbatch, chunk)."""
    out = ["S eval" if evaluation else "S"]
    for kind, microbatch, chunk in order:
        if not evaluation or kind == "F":
            out += [f"{mark} {NAMES[kind]} {chunk} {microbatch}" for mark in "BE"]
    return [*out, "T"]


def test_1f1b_computes_the_same_bit_for_bit(plain: list[str], socket_path: str) -> None:
    assert len(plain) == 4 + 2 + RANKS
    assert len(set(plain)) == len(plain), "losses change from step to step"
    if REAL_AGENT:
        job = os.environ.get("PERSEUS_TEST_JOB", "train-pipeline")
        assert numbers(train(*OPTIONS, job=job, agent=REAL_AGENT)) == plain
        return
    with FakeAgent(socket_path) as agent:
        lines = train(*OPTIONS, job="gpt", agent=socket_path)
        agent.wait(lambda a: len(a.talks) == RANKS and all(talk.ended for talk in a.talks))
    assert numbers(lines) == plain
    for talk in agent.talks:
        hello = talk.hello
        rank = hello["rank"]
        assert (hello["pp_rank"], hello["dp_rank"], hello["device"]) == (rank, 0, str(rank))
        assert hello["instructions"] == ["forward", "backward"]
        assert hello["spec"] == {
            "pp": 4,
            "dp": 1,
            "world_size": 4,
            "microbatches": 8,
            "chunks": 1,
            "schedule": "1f1b",
            "name": "train_pipeline",
            "model_key": "train_pipeline-1f1b",
        }
        order = one_f_one_b(RANKS, rank, 8)
        two_steps = told(order) + told(order) + told(order, evaluation=True)
        assert talk.ops() == two_steps + two_steps
        assert talk.said_bye
        assert f"perseus {rank} {len(talk.events)} 0" in lines, "no event was dropped"


@pytest.mark.skipif(bool(REAL_AGENT), reason="needs an agent that dies")
def test_an_agent_that_dies_changes_no_number(plain: list[str], socket_path: str) -> None:
    with FakeAgent(socket_path) as agent:
        died = Dying(agent)
        lines = train(*OPTIONS, job="gpt", agent=socket_path)
    assert died.after > 0
    assert numbers(lines) == plain
    counts = [line.split()[2:] for line in lines if line.startswith("perseus")]
    assert len(counts) == RANKS
    assert all(0 < int(dropped) < int(events) for events, dropped in counts)


class Dying:
    """Breaks every connection of the agent after 20 events."""

    def __init__(self, agent: FakeAgent) -> None:
        self.after = 0
        agent.on_event = self._count
        self._agent = agent

    def _count(self, connection: socket.socket) -> None:
        self.after += 1
        if self.after >= 20:
            connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.skipif(bool(REAL_AGENT), reason="compares events")
@pytest.mark.parametrize("schedule", ["interleaved-1f1b", "zbv"])
def test_tells_what_pytorch_runs(schedule: str, socket_path: str) -> None:
    options = ("--steps", "2", "--schedule", schedule, "--order", "--microbatches", "4")
    with FakeAgent(socket_path) as agent:
        lines = train(*options, ranks=2, job="gpt", agent=socket_path)
        agent.wait(lambda a: len(a.talks) == 2 and all(talk.ended for talk in a.talks))
    chunk_of: Callable[[int, int], int] = {
        "interleaved-1f1b": lambda stage, rank: stage // 2,
        "zbv": lambda stage, rank: int(stage != rank),
    }[schedule]
    for talk in agent.talks:
        rank = talk.hello["rank"]
        (said,) = (line for line in lines if line.startswith(f"order {rank} "))
        order = [(a[1], int(a[2:]), chunk_of(int(a[0]), rank)) for a in said.split()[2:]]
        assert order
        assert talk.ops() == told(order) + told(order)
        assert talk.hello["spec"]["schedule"] == schedule
        assert talk.hello["spec"]["chunks"] == 2
