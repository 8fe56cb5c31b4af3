"""The Megatron hook on stand-ins with the signatures of two versions."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

from fake_agent import FakeAgent
from perseus_client import OVERLAP, PerseusClient, megatron
from standins.orders import Order, interleaved, one_f_one_b
from standins.tensors import Tensor

VERSIONS = ("standins.megatron_0_8", "standins.megatron_0_19")
JOB: dict[str, Any] = {"rank": 7, "job": "gpt", "device": "GPU-1"}


def modules(package: str, monkeypatch: pytest.MonkeyPatch, virtual_size: int | None) -> tuple[Any, Any]:
    state = importlib.import_module(package + ".parallel_state")
    monkeypatch.setattr(state, "virtual_size", virtual_size)
    monkeypatch.setattr(state, "virtual_rank", 0)
    return importlib.import_module(package + ".pipeline_parallel.schedules"), state


def train(function: Any, microbatches: int = 8, **arguments: Any) -> Any:
    return function(
        forward_step_func=lambda *_: Tensor(1),
        data_iterator=None,
        num_microbatches=microbatches,
        **arguments,
    )


def told(order: Order, evaluation: bool = False) -> list[str]:
    out = ["S eval" if evaluation else "S"]
    for kind, microbatch, chunk in order:
        name = "forward" if kind == "F" else "backward"
        if not (evaluation and kind == "B"):
            out += [f"B {name} {chunk} {microbatch}", f"E {name} {chunk} {microbatch}"]
    return [*out, "T"]


@pytest.mark.parametrize("package", VERSIONS)
@pytest.mark.parametrize("virtual_size", [None, 2])
def test_tells_the_order_that_megatron_runs(
    package: str, virtual_size: int | None, socket_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules, _ = modules(package, monkeypatch, virtual_size)
    before = dict(vars(schedules))
    with FakeAgent(socket_path) as agent:
        with megatron.hook(package=package, socket_path=socket_path, **JOB) as hook:
            assert hook.client is None, "ranks are not known before the first step"
            function = schedules.get_forward_backward_func()  # fetched once, before the loop
            train(function, forward_only=True)  # an evaluation before training is not a step
            assert len(train(function)) == (8 if virtual_size is None else 16)
            train(function, forward_only=True)
            train(function)
            assert hook.client is not None
            hook.client.close()
            agent.wait(lambda a: a.talks and a.talks[0].ended)
        order = one_f_one_b(4, 1, 8) if virtual_size is None else interleaved(4, 1, 8, 2)
        assert agent.talks[0].ops() == told(order) + told(order, True) + told(order)
        hello = agent.talks[0].hello
        ranks = {name: hello[name] for name in ("rank", "pp_rank", "dp_rank", "tp_rank", "cp_rank", "ep_rank")}
        assert ranks == {"rank": 7, "pp_rank": 1, "dp_rank": 1, "tp_rank": 1, "cp_rank": 0, "ep_rank": 0}
        assert hello["spec"] == {
            "pp": 4,
            "dp": 2,
            "tp": 2,
            "cp": 1,
            "ep": 1,
            "world_size": 16,
            "microbatches": 8,
            "chunks": virtual_size or 1,
            "schedule": "1f1b" if virtual_size is None else "interleaved-1f1b",
        }
    assert dict(vars(schedules)) == before, "remove puts everything back"


def test_an_interrupted_step_leaves_nothing_open(socket_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, _ = modules(VERSIONS[1], monkeypatch, None)
    with FakeAgent(socket_path) as agent:
        with megatron.hook(package=VERSIONS[1], socket_path=socket_path, **JOB):

            def fail(*_: Any) -> Any:
                raise RuntimeError("out of memory")

            with pytest.raises(RuntimeError, match="out of memory"):
                schedules.forward_backward_no_pipelining(forward_step_func=fail, data_iterator=None, num_microbatches=2)
            train(schedules.forward_backward_no_pipelining, 1)
            agent.wait(lambda a: a.talks and len(a.talks[0].events) == 10)
        want = ["S", "B forward 0 0", "E forward 0 0", "T", *told(one_f_one_b(1, 0, 1))]
        assert agent.talks[0].ops() == want


def test_forward_and_backward_in_one_another_are_one_op(socket_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    modules(VERSIONS[1], monkeypatch, None)
    combined = importlib.import_module(VERSIONS[1] + ".pipeline_parallel.combined_1f1b")
    pairs = [("model", None, 1, 0), ("model", "model", 0, 1), (None, "model", 0, 0)]
    for names, middle in ((("forward", "backward", OVERLAP), OVERLAP), (("forward", "backward"), "forward")):
        with FakeAgent(socket_path) as agent:
            client = PerseusClient(
                0, job="gpt", spec={"pp": 1, "microbatches": 1}, instructions=names, socket_path=socket_path
            )
            with megatron.hook(client, package=VERSIONS[1]):
                with client.step():
                    combined.run_combined(pairs)
            agent.wait(lambda a: a.talks and len(a.talks[0].events) == 8)
            assert agent.talks[0].ops() == [
                *("S", "B forward 1 0", "E forward 1 0"),
                *(f"B {middle} 0 1", f"E {middle} 0 1", "B backward 0 -", "E backward 0 -", "T"),
            ]
            client.close()
        os.unlink(socket_path)


def test_several_modules_have_their_backward_told(socket_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, _ = modules(VERSIONS[1], monkeypatch, None)
    with (
        FakeAgent(socket_path) as agent,
        PerseusClient(0, job="gpt", spec={"pp": 1, "microbatches": 1}, socket_path=socket_path) as client,
    ):
        with megatron.hook(client, package=VERSIONS[1]), client.step():
            outputs = {m: {"language": Tensor(m)} for m in range(2)}
            for m, output in outputs.items():
                schedules.forward_step(
                    lambda *_, output=output: output, None, None, 2, None, [], None, 1, current_microbatch=m
                )
            for m in (1, 0):
                schedules.backward_step_multimodule(None, outputs[m], None, None, "language")
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 10)
        assert agent.talks[0].ops()[5:9:2] == ["B backward 0 1", "B backward 0 0"]


def test_a_failure_to_make_the_client_costs_no_training(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schedules, state = modules(VERSIONS[1], monkeypatch, None)
    monkeypatch.setitem(state.ranks, "pipeline_model", 99)
    with megatron.hook(package=VERSIONS[1], **JOB) as hook:
        for _ in range(3):
            assert len(train(schedules.forward_backward_no_pipelining)) == 8
        assert hook.client is None
    assert caplog.text.count("pp_rank 99") == 1


def test_hooks_nothing_without_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, _ = modules(VERSIONS[1], monkeypatch, None)
    before = dict(vars(schedules))
    megatron.hook(package=VERSIONS[1])
    megatron.hook(PerseusClient(enabled=False), package=VERSIONS[1])
    assert dict(vars(schedules)) == before


def test_says_what_is_missing() -> None:
    with pytest.raises(megatron.HookError, match="can't be imported"):
        megatron.hook(package="standins.none", job="gpt")
    with pytest.raises(megatron.HookError, match="can't be imported"):
        megatron.hook(job="gpt")  # Megatron isn't installed here


def test_leaves_alone_what_somebody_else_replaced_since(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, _ = modules(VERSIONS[1], monkeypatch, None)
    hook = megatron.hook(package=VERSIONS[1], **JOB)
    hooked = schedules.forward_step

    def theirs(*args: Any, **kwargs: Any) -> Any:
        return hooked(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(schedules, "forward_step", theirs)
        hook.remove()
        assert schedules.forward_step is theirs
        assert train(schedules.forward_backward_no_pipelining)
    monkeypatch.setattr(schedules, "forward_step", hooked.__wrapped__)
