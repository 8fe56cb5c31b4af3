"""What `step()` and `op()` give: each works in `with`, in `async with`, and as a decorator.

A client's own hold no state, so one may be used many times and by several threads or tasks at once.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast

if TYPE_CHECKING:
    from .client import PerseusClient

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Scope:
    """Something to be in; begin and end are the subclass's."""

    __slots__ = ()

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def again(self) -> Scope:
        """What one call of a decorated function is in: the scope itself, unless it keeps state."""
        return self

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __call__(self, function: _Function) -> _Function:
        """The function run inside this scope; of a coroutine function one that stays in it until it is done."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def inside_async(*args: Any, **kwargs: Any) -> Any:
                with self.again():
                    return await function(*args, **kwargs)

            return cast(_Function, inside_async)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.again():
                return function(*args, **kwargs)

        return cast(_Function, inside)


class StepScope(Scope):
    """One training step, or evaluation."""

    __slots__ = ("_client", "_evaluation")

    def __init__(self, client: PerseusClient, evaluation: bool) -> None:
        self._client = client
        self._evaluation = evaluation

    def __enter__(self) -> None:
        self._client.begin_step(self._evaluation)

    def __exit__(self, *_: object) -> None:
        self._client.end_step()


class OpScope(Scope):
    """One op of a step."""

    __slots__ = ("_chunk", "_client", "_instruction", "_microbatch")

    def __init__(self, client: PerseusClient, instruction: int, chunk: int, microbatch: int) -> None:
        self._client = client
        self._instruction = instruction
        self._chunk = chunk
        self._microbatch = microbatch

    def __enter__(self) -> None:
        self._client.begin_op(self._instruction, self._chunk, self._microbatch)

    def __exit__(self, *_: object) -> None:
        self._client.end_op()
