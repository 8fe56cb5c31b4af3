"""What the hooks of all frameworks share: replacing attributes, and reading arguments by their names.

Signatures of training frameworks move from version to version, so nothing here knows the position of an argument.
"""

from __future__ import annotations

import inspect
import logging
from typing import Any, Callable

from .client import PerseusClient

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]


class HookError(Exception):
    """The framework does not have what a hook needs: another version, or not the object it was said to be."""


class Hook:
    """What one call of a hook replaced. `remove` puts it back; so does leaving a `with`."""

    def __init__(self, client: PerseusClient | None, logger: logging.Logger) -> None:
        self.client = client
        self._logger = logger
        self._owns_client = False
        self._undo: list[Callable[[], None]] = []

    def remove(self) -> None:
        """Puts back what was replaced, but for what somebody else replaced since; closes a client made by the hook."""
        while self._undo:
            self._undo.pop()()
        if self._owns_client and self.client is not None:
            self.client.close()

    def own(self, client: PerseusClient) -> None:
        """Takes a client that was made for this hook and ends with it."""
        self.client = client
        self._owns_client = True

    def replace(self, owner: Any, name: str, wrapper: Any) -> None:
        """Sets owner.name, until remove."""
        missing = object()
        before = vars(owner).get(name, missing)
        setattr(owner, name, wrapper)

        def undo() -> None:
            if vars(owner).get(name) is not wrapper:
                return
            if before is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(undo)

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def needed(owner: Any, name: str, what: str) -> Any:
    """owner.name. Raises HookError if there is none; what says what owner should have been."""
    value = getattr(owner, name, None)
    if value is None:
        raise HookError(f"{type(owner).__name__} {getattr(owner, '__name__', '')} has no {name}: {what} is expected")
    return value


def argument(function: Callable[..., Any], name: str, default: Any = None) -> Callable[[Arguments, Keywords], Any]:
    """A reader of one argument of calls of the function: by keyword or at its place, else its default value.

    A function without such a parameter gives default for every call.
    """
    position: int | None = None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for index, parameter in enumerate(parameters):
        if parameter.name == name:
            if parameter.default is not inspect.Parameter.empty:
                default = parameter.default
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                position = index

    def read(args: Arguments, kwargs: Keywords) -> Any:
        if name in kwargs:
            return kwargs[name]
        if position is not None and position < len(args):
            return args[position]
        return default

    return read


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Whether the function has a parameter of that name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def number(value: Any, default: int) -> int:
    """The value where it is a whole number, else default."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default
