"""What the environment says of this process: torchrun's variables and those of Perseus."""

from __future__ import annotations

import os

DEFAULT_SOCKET = "/run/perseus/agent.sock"


def integer(name: str) -> int | None:
    """The variable as a whole number from 0; None where it is not set or empty.

    Raises ValueError, naming variable and value, if it is anything else.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise ValueError(f"environment variable {name}={text!r}: not a whole number from 0")
    return int(text)


def job() -> str | None:
    """The job's id, from PERSEUS_JOB; None where it is not set or empty."""
    return os.environ.get("PERSEUS_JOB", "").strip() or None


def socket_path() -> str:
    """Where the node's agent listens: PERSEUS_AGENT_SOCKET, else where the agent listens by default."""
    return os.environ.get("PERSEUS_AGENT_SOCKET", "").strip() or DEFAULT_SOCKET
