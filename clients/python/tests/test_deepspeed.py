"""The DeepSpeed hook on a stand-in that looks its instructions up as the real engine does."""

from __future__ import annotations

import pytest

from fake_agent import FakeAgent
from perseus_client import PerseusClient, deepspeed
from standins.deepspeed_pipe import ForwardPass, PipelineEngine
from standins.orders import one_f_one_b


def told(evaluation: bool) -> list[str]:
    out = ["S eval" if evaluation else "S"]
    for kind, microbatch, _ in one_f_one_b(4, 1, 6):
        name = "forward" if kind == "F" else "backward"
        if not (evaluation and kind == "B"):
            out += [f"B {name} 0 {microbatch}", f"E {name} 0 {microbatch}"]
    return [*out, "T"]


def test_tells_every_forward_and_backward(socket_path: str) -> None:
    engine, other = PipelineEngine(), PipelineEngine()
    plain = other.train_batch()
    with FakeAgent(socket_path) as agent:
        with deepspeed.hook(engine, rank=6, job="gpt", device="GPU-1", socket_path=socket_path):
            assert engine.train_batch() == plain
            engine.eval_batch(None)
            assert engine.train_batch() == plain
            other.train_batch()  # another engine is not touched
            agent.wait(lambda a: a.talks and len(a.talks[0].events) == 66)
        talk = agent.talks[0]
        assert talk.ops() == told(False) + told(True) + told(False)
        assert (talk.hello["pp_rank"], talk.hello["dp_rank"], talk.hello["tp_rank"]) == (1, 1, 0)
        assert talk.hello["spec"] == {"pp": 4, "dp": 2, "tp": 1, "world_size": 8, "microbatches": 6, "schedule": "1f1b"}
    assert "_INSTRUCTION_MAP" not in vars(engine)
    assert "_exec_schedule" not in vars(engine)
    assert engine.train_batch() == plain


def test_hooks_nothing_without_a_job() -> None:
    engine = PipelineEngine()
    deepspeed.hook(engine)
    deepspeed.hook(engine, PerseusClient(enabled=False))
    assert "_exec_schedule" not in vars(engine)


def test_says_what_is_missing() -> None:
    with pytest.raises(deepspeed.HookError, match=r"object .* has no _INSTRUCTION_MAP"):
        deepspeed.hook(object(), job="gpt", rank=0)

    class Other(PipelineEngine):
        _INSTRUCTION_MAP = {ForwardPass: PipelineEngine._exec_forward_pass}

    with pytest.raises(deepspeed.HookError, match="no BackwardPass"):
        deepspeed.hook(Other(), job="gpt", rank=0)


def test_arguments_and_spec_of_the_caller_win(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent:
        spec = {"microbatches": 12, "gpu": "H200"}
        engine = PipelineEngine()
        with deepspeed.hook(engine, rank=6, dp_rank=0, job="gpt", spec=spec, socket_path=socket_path):
            engine.train_batch()
            agent.wait(lambda a: a.talks)
        hello = agent.talks[0].hello
        assert (hello["dp_rank"], hello["spec"]["microbatches"], hello["spec"]["gpu"]) == (0, 12, "H200")
