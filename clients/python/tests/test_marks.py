"""Marks on a GPU's stream, with events that a test lets happen."""

from __future__ import annotations

import logging
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fake_agent import FakeAgent
from perseus_client import PerseusClient
from perseus_client.marks import StreamMarks

LOGGER = logging.getLogger("test")


class Stream:
    """A stream that gets to its events when it is told to. Stands in for torch.cuda."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.made = 0
        self.capturing = False

    def new_event(self) -> Event:
        self.made += 1
        return Event(self)

    def advance(self, events: int) -> None:
        for _ in range(events):
            self.gate.release()


class Event:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.recorded = 0

    def record(self) -> None:
        self.recorded += 1

    def synchronize(self) -> None:
        assert self.stream.gate.acquire(timeout=20)


def test_posts_when_the_stream_gets_there_in_order() -> None:
    stream, posted, came = Stream(), [], threading.Semaphore(0)

    def post(*fields: int) -> None:
        posted.append(fields)
        came.release()

    marks = StreamMarks(post, stream.new_event, lambda: stream.capturing, LOGGER)
    for i in range(3):
        marks.mark(i, 0, 0, 0)
    assert posted == []
    for i in range(3):
        stream.advance(1)
        assert came.acquire(timeout=20)
        assert [fields[0] for fields in posted] == list(range(i + 1))
    stream.capturing = True
    marks.mark(9, 0, 0, 0)
    stream.capturing = False
    stream.advance(1)
    marks.mark(3, 0, 0, 0)
    marks.close(20)
    assert [fields[0] for fields in posted] == [0, 1, 2, 3]
    assert stream.made <= 4, "events are used again"


def test_an_event_that_fails_costs_no_training() -> None:
    posted = []

    class Failing:
        def record(self) -> None:
            pass

        def synchronize(self) -> None:
            raise RuntimeError("device lost")

    def broken() -> Any:
        raise RuntimeError("no CUDA")

    marks = StreamMarks(lambda *fields: posted.append(fields), Failing, lambda: False, LOGGER)
    marks.mark(1, 2, 3, 4)
    marks.close(20)
    assert posted == [(1, 2, 3, 4)]
    marks = StreamMarks(lambda *fields: posted.append(fields), broken, lambda: False, LOGGER)
    marks.mark(1, 2, 3, 4)
    marks.close(20)
    assert len(posted) == 1


@pytest.mark.parametrize("initialized", [True, False])
def test_a_client_marks_pytorchs_stream(monkeypatch: pytest.MonkeyPatch, socket_path: str, initialized: bool) -> None:
    stream = Stream()

    def new_event(*, enable_timing: bool, blocking: bool) -> Event:
        assert (enable_timing, blocking) == (False, True), "the waiting thread must give the interpreter free"
        return stream.new_event()

    cuda = SimpleNamespace(
        is_initialized=lambda: initialized,
        is_current_stream_capturing=lambda: False,
        Event=new_event,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with FakeAgent(socket_path) as agent:
        with PerseusClient(0, job="gpt", spec={"pp": 1, "microbatches": 1}, socket_path=socket_path) as client:
            with client.step(), client.op("forward"):
                pass
            assert client.sequence == (0 if initialized else 4)
            stream.advance(4)
            agent.wait(lambda a: a.talks and len(a.talks[0].events) == 4)
            assert agent.talks[0].ops() == ["S", "B forward 0 -", "E forward 0 -", "T"]


def test_says_so_if_there_is_no_stream(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    client = PerseusClient(
        0, job="gpt", spec={"pp": 1, "microbatches": 1}, timing="stream", socket_path="/nowhere/agent.sock"
    )
    for _ in range(2):
        with client.step():
            pass
    assert caplog.text.count("needs PyTorch on CUDA") == 1
    assert client.sequence == 4
