"""`step` and `op` without naming a client: that of the running context, else that of the process.

The context's client (`use`) follows asyncio tasks, as context variables do. Threads start with an empty context and
so take the process's (`init`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, Callable

from .client import PerseusClient
from .scopes import Scope

_context: ContextVar[PerseusClient | None] = ContextVar("perseus_client", default=None)
_process: PerseusClient | None = None


def init(*args: Any, **kwargs: Any) -> PerseusClient:
    """Makes a client, with the arguments of PerseusClient, that `step` and `op` use in the whole process.

    One made before is closed. Keep no more than one rank in a process this way; several take `use`.
    """
    global _process
    client = PerseusClient(*args, **kwargs)
    if _process is not None:
        _process.close()
    _process = client
    return client


@contextlib.contextmanager
def use(client: PerseusClient) -> Iterator[PerseusClient]:
    """`step` and `op` use this client within the `with`, and in tasks started there."""
    token = _context.set(client)
    try:
        yield client
    finally:
        _context.reset(token)


def current() -> PerseusClient | None:
    """The client that `step` and `op` use here; None if there is none."""
    return _context.get() or _process


def step(*, evaluation: bool = False) -> CurrentScope:
    """PerseusClient.step of the client that is current when it begins; without one, nothing happens in it."""
    return CurrentScope(lambda client: client.step(evaluation=evaluation))


def op(instruction: str, *, microbatch: int | None = None, chunk: int = 0) -> CurrentScope:
    """PerseusClient.op of the client that is current when it begins; without one, nothing happens in it."""
    return CurrentScope(lambda client: client.op(instruction, microbatch=microbatch, chunk=chunk))


class CurrentScope(Scope):
    """A step or an op of the current client, which is asked for at each begin: also as a decorator."""

    __slots__ = ("_make", "_open")

    def __init__(self, make: Callable[[PerseusClient], Scope]) -> None:
        self._make = make
        self._open: list[Scope | None] = []

    def __enter__(self) -> None:
        client = _context.get() or _process
        scope = None if client is None else self._make(client)
        self._open.append(scope)
        if scope is not None:
            scope.__enter__()

    def __exit__(self, *_: object) -> None:
        scope = self._open.pop()
        if scope is not None:
            scope.__exit__()

    def again(self) -> CurrentScope:
        """Another one, for one call of a decorated function."""
        return CurrentScope(self._make)
