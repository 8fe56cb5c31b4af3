"""An agent that only listens: it answers hellos and keeps what it is told. Also a program, for looking at a job:

python fake_agent.py SOCKET prints every hello and event.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from perseus_client import wire

WELCOME = {"welcome": 1, "generation": 1, "heartbeat_s": 5, "steering": True, "note": ""}


class Talk:
    """One connection: what a process said, in order."""

    def __init__(self) -> None:
        self.hello: dict[str, Any] = {}
        self.events: list[wire.Event] = []
        self.said_bye = False
        self.ended = False

    def ops(self) -> list[str]:
        """The events in short: S, T, H, and B or E with instruction, chunk and microbatch ("B forward 0 3")."""
        names = self.hello["instructions"]
        out = []
        for event in self.events:
            kind = chr(event.kind)
            if kind in "BE":
                microbatch = "-" if event.microbatch == wire.NO_MICROBATCH else str(event.microbatch)
                kind = f"{kind} {names[event.instruction]} {event.chunk} {microbatch}"
            elif kind == "S" and event.microbatch == 1:
                kind = "S eval"
            out.append(kind)
        return out


class FakeAgent:
    """Listens at path until closed. answer is what it says to a hello; reading can be held up."""

    def __init__(self, path: str, answer: dict[str, Any] | None = None, *, reads: bool = True) -> None:
        self.talks: list[Talk] = []
        self.on_event: Callable[[socket.socket], None] = lambda _: None
        self._answer = WELCOME if answer is None else answer
        self._reads = reads
        self._changed = threading.Condition()
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(path)
        self._listener.listen(64)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def wait(self, condition: Any, timeout_s: float = 20.0) -> None:
        """Returns when condition(self) holds; fails the test if that takes too long."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), timeout_s), [talk.ops() for talk in self.talks]

    def say(self, message: dict[str, Any]) -> None:
        """Sends a control message on every live connection."""
        for connection in self._sockets:
            connection.send(json.dumps(message).encode())

    def close(self) -> None:
        """Ends the listener and all connections, and waits for the threads."""
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(20)
        for each in (self._listener, *self._sockets):
            each.close()

    def __enter__(self) -> FakeAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        talk = Talk()
        while True:
            try:
                packet = connection.recv(wire.MAX_PACKET)
            except OSError:
                packet = b""
            with self._changed:
                if not packet:
                    talk.ended = True
                elif packet.startswith(b"{"):
                    message = json.loads(packet)
                    if "hello" in message:
                        talk.hello = message
                        self.talks.append(talk)
                        with contextlib.suppress(OSError):  # the process may be gone already
                            connection.send(json.dumps(self._answer).encode())
                            if "error" in self._answer:
                                connection.shutdown(socket.SHUT_RDWR)
                    talk.said_bye |= "bye" in message
                else:
                    talk.events.extend(wire.unpack_events(packet))
                    self.on_event(connection)
                self._changed.notify_all()
            if not packet or not self._reads:
                return


def _print_all(path: str) -> None:
    agent = FakeAgent(path)
    seen: dict[int, int] = {}
    while True:
        agent.wait(lambda a: any(len(talk.events) > seen.get(i, -1) for i, talk in enumerate(a.talks)), 1e6)
        for i, talk in enumerate(agent.talks):
            if i not in seen:
                print(f"rank {talk.hello['rank']}: {talk.hello}", flush=True)
            for text in talk.ops()[seen.get(i, 0) :]:
                print(f"rank {talk.hello['rank']}: {text}", flush=True)
            seen[i] = len(talk.events)


if __name__ == "__main__":
    _print_all(sys.argv[1])
