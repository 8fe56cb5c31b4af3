"""The client against a listening agent, and against none."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from typing import Any

import pytest

import perseus_client
from fake_agent import FakeAgent
from perseus_client import PerseusClient, wire

SPEC = {"pp": 4, "dp": 2, "microbatches": 8, "world_size": 8}


def new_client(path: str, **arguments: Any) -> PerseusClient:
    given: dict[str, Any] = {"rank": 5, "pp_rank": 2, "dp_rank": 1, "job": "gpt", "spec": SPEC, "device": "GPU-1"}
    return PerseusClient(**{**given, **arguments}, socket_path=path)


def test_says_hello_and_every_event_in_order(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with client.step():
            with client.op("forward", microbatch=0):
                pass
            with client.op("backward", microbatch=0, chunk=1):
                pass
        with client.step(evaluation=True), client.op("forward"):
            pass
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 10)
        talk = agent.talks[0]
        assert talk.hello.pop("session")
        assert talk.hello == {
            "hello": 1,
            "job": "gpt",
            "spec": SPEC,
            "generation": 0,
            "rank": 5,
            "pp_rank": 2,
            "dp_rank": 1,
            "tp_rank": 0,
            "cp_rank": 0,
            "ep_rank": 0,
            "device": "GPU-1",
            "instructions": ["forward", "backward"],
            "client": "python/" + perseus_client.__version__,
            "iteration": 0,
        }
        assert talk.ops() == [
            *("S", "B forward 0 0", "E forward 0 0", "B backward 1 0", "E backward 1 0", "T"),
            *("S eval", "B forward 0 -", "E forward 0 -", "T"),
        ]
        assert [event.sequence for event in talk.events] == list(range(1, 11))
        times = [event.time_ns for event in talk.events]
        assert times == sorted(times)
        client.close()
        agent.wait(lambda a: a.talks and a.talks[0].ended)
        assert talk.said_bye
        assert client.dropped == 0


def test_nothing_happens_without_a_job(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent:
        client = PerseusClient(socket_path=socket_path)
        assert not client.enabled
        with client.step(), client.op("forward"):
            pass
        client.close()
        assert (client.sequence, client.connected, agent.talks) == (0, False, [])


def test_goes_on_without_an_agent_and_finds_it_later(socket_path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = 1000.0
    client = new_client(socket_path)
    client._clock = lambda: now

    def run_step() -> None:
        with client.step(), client.op("forward"):
            pass

    run_step()
    run_step()
    assert (client.sequence, client.dropped, client.connected) == (8, 8, False)
    assert caplog.text.count("no agent at") == 1
    with FakeAgent(socket_path) as agent:
        run_step()  # too early to try again
        assert not client.connected
        now += 1.0
        run_step()
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 4)
        assert [event.sequence for event in agent.talks[0].events] == [13, 14, 15, 16]
        assert client.dropped == 12
        client.close()


def test_backs_off_up_to_a_minute(socket_path: str) -> None:
    now = 0.0
    client = new_client(socket_path)
    client._clock = lambda: now
    waits = []
    for _ in range(9):
        with client.step():
            pass
        waits.append(client._retry_at - now)
        now = client._retry_at
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_connects_again_after_the_agent_died(socket_path: str) -> None:
    now = 0.0
    client = new_client(socket_path)
    client._clock = lambda: now
    with FakeAgent(socket_path, {"welcome": 1, "generation": 7, "heartbeat_s": 5}) as agent:
        with client.step():
            pass
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 2)
        wait_until(lambda: client.generation == 7)
        session = agent.talks[0].hello["session"]
        client.begin_step()
    wait_until(lambda: not client.connected)
    os.unlink(socket_path)
    with FakeAgent(socket_path) as agent:
        client.begin_op(0)
        client.end_op()
        client.end_step()
        now += 1.0
        with client.step():
            pass
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 2)
        assert agent.talks[0].hello["generation"] == 7, "it stays in its generation"
        assert agent.talks[0].hello["iteration"] == 2, "steps of which the new agent heard nothing count"
        assert agent.talks[0].hello["session"] == session
        assert agent.talks[0].ops() == ["S", "T"]
        client.close()


def test_tells_a_new_agent_nothing_of_a_half_step(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with client._lock:
            client._connect()
        with client.op("forward"):
            pass
        with client.step():
            pass
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 2)
        assert agent.talks[0].ops() == ["S", "T"]
        assert client.dropped == 2


@pytest.mark.parametrize(("code", "wait"), [("busy", 1), ("unavailable", 1), ("denied", 60), ("invalid", 60)])
def test_goes_on_when_refused(socket_path: str, caplog: pytest.LogCaptureFixture, code: str, wait: float) -> None:
    with FakeAgent(socket_path, {"error": "not your GPU", "code": code}):
        client = new_client(socket_path)
        client._clock = lambda: 100.0
        with client.step():
            pass
        wait_until(lambda: not client.connected)
        with client.step(), client.op("forward"):
            pass
        assert client._retry_at == 100 + wait
        assert "not your GPU" in caplog.text


def test_never_waits_for_an_agent_that_does_not_read(socket_path: str) -> None:
    with FakeAgent(socket_path, reads=False) as agent, new_client(socket_path) as client:
        with client.step():
            for _ in range(20000):
                client.begin_op(0)
                client.end_op()
        assert client.sequence == 40002
        assert client.dropped > 0
        agent.wait(lambda a: a.talks)


def test_heartbeats_while_nothing_happens(socket_path: str) -> None:
    with FakeAgent(socket_path, {"welcome": 1, "generation": 1, "heartbeat_s": 0.02}) as agent:
        with new_client(socket_path) as client:
            client.begin_step()
            agent.wait(lambda a: a.talks and a.talks[0].ops().count("H") >= 3)
            client.end_step()


def test_passes_notices_on_to_the_log(socket_path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with client.step():
            pass
        agent.wait(lambda a: a.talks)
        agent.say({"notice": "the clock is set by somebody else"})
        wait_until(lambda: "set by somebody else" in caplog.text)
        assert "the agent steers this GPU" in caplog.text


def test_survives_nonsense_from_the_agent(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with client.step():
            pass
        agent.wait(lambda a: a.talks)
        for packet in (b"{", b"[1]", b"\xff\x00", b'{"welcome":1,"generation":"x","heartbeat_s":null}', b"{}"):
            agent._sockets[0].send(packet)
        agent.say({"notice": "end"})
        with client.step():
            pass
        agent.wait(lambda a: len(a.talks[0].events) == 4)
        assert client.connected


def test_only_the_outermost_step_and_op_are_told(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with client.step(), client.step(evaluation=True):
            with client.op("forward", microbatch=3), client.op("backward", microbatch=4):
                pass
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 4)
        assert agent.talks[0].ops() == ["S", "B forward 0 3", "E forward 0 3", "T"]


def test_an_exception_passes_and_ends_what_was_open(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with pytest.raises(KeyError), client.step(), client.op("forward"):
            raise KeyError
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 4)
        assert agent.talks[0].ops()[-2:] == ["E forward 0 -", "T"]


def test_decorators(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:

        @client.op("forward")
        def forward(x: int, *, y: int) -> int:
            """Doc."""
            return x + y

        @client.op("backward")
        async def backward(x: int) -> int:
            await asyncio.sleep(0)
            return x

        @client.step()
        def step() -> int:
            return forward(1, y=2) + asyncio.run(backward(3))

        assert step() == 6
        assert forward.__doc__ == "Doc."
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 6)
        want = ["S", "B forward 0 -", "E forward 0 -", "B backward 0 -", "E backward 0 -", "T"]
        assert agent.talks[0].ops() == want


def test_async_with_and_tasks_that_overlap(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:

        async def one(microbatch: int) -> None:
            async with client.op("forward", microbatch=microbatch):
                await asyncio.sleep(0)

        async def main() -> None:
            async with client.step():
                await asyncio.gather(one(0), one(1), one(2))
                await one(3)

        asyncio.run(main())
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 6)
        want = ["S", "B forward 0 0", "E forward 0 0", "B forward 0 3", "E forward 0 3", "T"]
        assert agent.talks[0].ops() == want, "a rank runs one op at a time"


def test_threads_never_break_sequence_or_nesting(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        client.begin_step()
        start = threading.Barrier(8)

        def run() -> None:
            start.wait()
            for _ in range(200):
                with client.op("forward"):
                    pass

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.end_step()
        client.close()
        agent.wait(lambda a: a.talks and a.talks[0].ended)
        events = agent.talks[0].events
        assert len(events) + client.dropped == client.sequence
        numbers = [event.sequence for event in events]
        assert numbers == sorted(set(numbers))
        by_number = {event.sequence: chr(event.kind) for event in events}
        for number, kind in by_number.items():
            if 1 < number < client.sequence:
                assert kind == ("B" if number % 2 == 0 else "E")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_fork_leaves_the_connection_to_the_parent(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        with client.step():
            pass
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 2)
        child = os.fork()
        if child == 0:
            ok = not client.connected
            client.close()
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.connected
        with client.step():
            pass
        agent.wait(lambda a: len(a.talks[0].events) == 4)
        assert not agent.talks[0].said_bye


def test_module_functions_take_the_current_client(socket_path: str) -> None:
    @perseus_client.op("forward")
    def forward() -> None:
        pass

    forward()  # without a client
    with perseus_client.step(), perseus_client.op("anything at all"):
        pass
    assert perseus_client.current() is None
    with FakeAgent(socket_path) as agent:
        process = perseus_client.init(5, 1, 2, 0, "GPU-1", job="gpt", spec=SPEC, socket_path=socket_path)
        with new_client(socket_path, rank=6) as mine, perseus_client.use(mine):
            assert perseus_client.current() is mine
            with perseus_client.step():
                forward()
            # A thread starts without context: it is the process's client that is told.
            thread = threading.Thread(target=lambda: perseus_client.step()(forward)())
            thread.start()
            thread.join()
        assert perseus_client.current() is process
        agent.wait(lambda a: len(a.talks) == 2 and all(len(talk.events) == 4 for talk in a.talks))
        assert {talk.hello["rank"] for talk in agent.talks} == {5, 6}
        perseus_client.init(enabled=False)  # closes the one before
        agent.wait(lambda a: all(talk.said_bye for talk in a.talks))


def test_identity_never_makes_an_event_fail(socket_path: str) -> None:
    with FakeAgent(socket_path) as agent, new_client(socket_path) as client:
        client.begin_step()
        client.begin_op(1, chunk=-3, microbatch=1 << 40)
        client.end_op()
        client.end_step()
        agent.wait(lambda a: a.talks and len(a.talks[0].events) == 4)
        event = agent.talks[0].events[1]
        assert (event.chunk, event.microbatch) == (wire.MAX_CHUNK, wire.NO_MICROBATCH)


def wait_until(condition: Any) -> None:
    """Waits for something that another thread is about to do."""
    done = threading.Event()
    for _ in range(4000):
        if condition():
            return
        done.wait(0.005)
    raise AssertionError("it did not happen within 20 s")
