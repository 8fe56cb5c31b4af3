"""The bytes between a training process and the node's agent.

The socket is a Unix one of type SOCK_SEQPACKET: one packet is one message of at most MAX_PACKET bytes. Control
messages are JSON objects, events are EVENT_SIZE bytes each and several may share a packet. This module knows
layouts only; it opens nothing.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

MAX_PACKET = 65536
EVENT_SIZE = 24

STEP_BEGIN = ord("S")
STEP_END = ord("T")
OP_BEGIN = ord("B")
OP_END = ord("E")
HEARTBEAT = ord("H")

NO_MICROBATCH = 0xFFFFFFFF
MAX_CHUNK = 0xFFFF

_EVENT = struct.Struct("<BBHIQQ")  # kind, instruction, chunk, microbatch, sequence, time in ns

pack_event = _EVENT.pack


class Event(NamedTuple):
    """One event as it is on the wire."""

    kind: int
    instruction: int  # index into the hello's instructions
    chunk: int
    microbatch: int  # NO_MICROBATCH if unknown; of a step begin 1 for evaluation
    sequence: int  # from 1, one more for each event, those not delivered included
    time_ns: int  # CLOCK_MONOTONIC


def unpack_events(packet: bytes) -> list[Event]:
    """The events of one packet. Raises ValueError if its length is not a positive multiple of EVENT_SIZE."""
    if not packet or len(packet) % EVENT_SIZE:
        raise ValueError(f"packet of {len(packet)} bytes: events take {EVENT_SIZE} bytes each")
    return [Event(*fields) for fields in _EVENT.iter_unpack(packet)]


def pack_control(message: dict[str, Any]) -> bytes:
    """The packet of a control message. Raises ValueError if it is longer than MAX_PACKET."""
    packet = json.dumps(message, separators=(",", ":")).encode()
    if len(packet) > MAX_PACKET:
        raise ValueError(
            f"message of {len(packet)} bytes: at most {MAX_PACKET} fit; shorten spec.schedule_csv or spec.metadata"
        )
    return packet


def unpack_control(packet: bytes) -> dict[str, Any] | None:
    """The control message of a packet; None if it holds none."""
    try:
        message = json.loads(packet)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
