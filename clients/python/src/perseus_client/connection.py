"""One connection to the node's agent: sends without ever blocking, and listens in a thread of its own."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from typing import Any, Callable

from . import wire

_SEND_FLAGS = getattr(socket, "MSG_DONTWAIT", 0) | getattr(socket, "MSG_NOSIGNAL", 0)
_DEFAULT_HEARTBEAT_S = 5.0


class Connection:
    """A live connection. Whatever ends it is told by on_closed, once, on the listening thread.

    All methods are called with the owner's lock held; the callbacks are called without it. The listening thread is
    a daemon: it never keeps the process from ending. It needs no CPU but at messages and heartbeats.
    """

    def __init__(
        self,
        path: str,
        hello: bytes,
        lock: threading.Lock,
        on_message: Callable[[Connection, dict[str, Any]], None],
        on_heartbeat: Callable[[Connection], None],
        on_closed: Callable[[Connection], None],
    ) -> None:
        """Connects and says hello, without waiting for the answer. Raises OSError if that can't be done at once."""
        self._lock = lock
        self._on_message = on_message
        self._on_heartbeat = on_heartbeat
        self._on_closed = on_closed
        self._heartbeat_s = _DEFAULT_HEARTBEAT_S
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.setblocking(False)
            self._socket.connect(path)
            self._socket.send(hello, _SEND_FLAGS)
        except BaseException:
            self._socket.close()
            raise
        threading.Thread(target=self._listen, name="perseus-client", daemon=True).start()

    def send(self, packet: bytes) -> bool:
        """Whether the kernel took the packet. False if the agent doesn't keep up or is gone: then it is dropped."""
        try:
            self._socket.send(packet, _SEND_FLAGS)
        except OSError:
            return False
        return True

    def set_heartbeat(self, seconds: float) -> None:
        """How often the agent wants to hear of a process that has nothing else to say."""
        if seconds > 0:
            self._heartbeat_s = seconds

    def shut(self) -> None:
        """Ends the connection; the listening thread sees it and closes the socket."""
        with contextlib.suppress(OSError):  # the agent was faster
            self._socket.shutdown(socket.SHUT_RDWR)

    def abandon(self) -> None:
        """Closes this process's copy of the socket, after a fork: the connection is the parent's."""
        self._socket.close()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        while True:
            # Twice as often as asked for, so that one late wake-up costs no lease.
            if not poll.poll(self._heartbeat_s * 500):
                self._on_heartbeat(self)
                continue
            try:
                packet = self._socket.recv(wire.MAX_PACKET)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:
                break
            if not packet:
                break
            message = wire.unpack_control(packet)
            if message is not None:
                self._on_message(self, message)
        with self._lock:
            self._socket.close()
        self._on_closed(self)
