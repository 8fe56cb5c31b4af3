"""What is refused when a client is made, and what is taken from the environment."""

from __future__ import annotations

import json
import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from perseus_client import PerseusClient, devices, spec, wire


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": None}, "rank is missing"),
        ({"rank": -1}, "rank -1"),
        ({"rank": 8}, "rank 8: there are 8 places"),
        ({"rank": True}, "rank True"),
        ({"pp_rank": None}, "pp_rank is missing: there are 4 places"),
        ({"pp_rank": 4}, "pp_rank 4"),
        ({"tp_rank": 1}, "tp_rank 1: there are 1 places"),
        ({"job": "../etc"}, "job '../etc'"),
        ({"job": "a" * 129}, "1 to 128"),
        ({"job": ""}, "job ''"),
        ({"spec": None}, "spec is missing"),
        ({"spec": {"pp": 4}}, "microbatches is missing"),
        ({"spec": {"pp": 4, "microbatches": 8, "micro_batches": 8}}, "unknown field 'micro_batches'"),
        ({"spec": {"pp": 0, "microbatches": 8}}, "pp 0"),
        ({"spec": {"pp": 4, "dp": 2, "microbatches": 8, "world_size": 9}}, "world_size 9"),
        ({"spec": {"pp": 4, "dp": 2, "microbatches": 8, "schedule_csv": "0F0," * 20000}}, "at most 65536"),
        ({"device": -1}, "device -1"),
        ({"device": ""}, "device ''"),
        ({"timing": "gpu"}, "timing 'gpu'"),
        ({"instructions": ()}, "instructions"),
        ({"instructions": ("Forward",)}, "instructions: 'Forward'"),
        ({"instructions": ("forward", "forward")}, "instructions"),
    ],
)
def test_refuses(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "rank": 5,
        "pp_rank": 2,
        "dp_rank": 1,
        "job": "gpt",
        "spec": {"pp": 4, "dp": 2, "microbatches": 8},
    }
    PerseusClient(**good)
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        PerseusClient(**{**good, **arguments})


def test_refuses_an_op_that_it_was_not_told_of() -> None:
    client = PerseusClient(0, enabled=False)
    with pytest.raises(ValueError, match="op 'forwrad'"):
        client.op("forwrad")
    with pytest.raises(ValueError, match="instruction 'forwrad'"):
        client.instruction("forwrad")


def test_takes_torchruns_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSEUS_JOB", "from-env")
    monkeypatch.setenv("PERSEUS_AGENT_SOCKET", "/x/agent.sock")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    client = PerseusClient(pp_rank=3, spec={"pp": 4, "microbatches": 8})
    assert client.enabled
    assert client._path == "/x/agent.sock"
    assert (client._hello["job"], client._hello["rank"]) == ("from-env", 3)
    assert client._hello["spec"]["world_size"] == 4
    monkeypatch.setenv("WORLD_SIZE", "8")
    with pytest.raises(ValueError, match="world_size 8: the degrees pp 4"):
        PerseusClient(pp_rank=3, spec={"pp": 4, "microbatches": 8})
    monkeypatch.setenv("RANK", "three")
    with pytest.raises(ValueError, match="RANK='three'"):
        PerseusClient(pp_rank=3, spec={"pp": 4, "microbatches": 8})


def test_works_where_there_are_no_such_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SOCK_SEQPACKET")
    client = PerseusClient(0, job="gpt", spec={"pp": 1, "microbatches": 1})
    with client.step(), client.op("forward"):
        pass
    assert client.dropped == 4


@pytest.mark.parametrize(
    ("device", "local_rank", "visible", "want"),
    [
        (None, None, None, "0"),
        (None, 3, None, "3"),
        (None, 3, "4,5,6,7", "7"),
        (None, 3, "6", "6"),
        (1, 3, "GPU-a, GPU-b", "GPU-b"),
        ("cuda:1", 0, "4,5", "5"),
        ("cuda", 1, "4,5", "5"),
        ("cpu", 2, "", "2"),
        ("cpu", 2, "-1", "2"),
        ("GPU-a", 0, "4,5", "GPU-a"),
        ("7", 0, "4,5", "7"),
        (2, 0, None, "2"),
    ],
)
def test_names_the_device(
    monkeypatch: pytest.MonkeyPatch, device: Any, local_rank: int | None, visible: str | None, want: str
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.name_of(device, local_rank) == want


def test_refuses_a_device_that_is_not_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    with pytest.raises(ValueError, match="has 2 devices"):
        devices.name_of(2, None)


def test_asks_pytorch_for_the_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: True, get_device_properties=lambda i: SimpleNamespace(uuid=f"00-{i}"))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert devices.name_of("cuda:1", 0) == "GPU-00-1"
    cuda.get_device_properties = lambda i: SimpleNamespace()
    assert devices.name_of("cuda:1", 0) == "1"


def test_events_have_the_layout_of_the_wire() -> None:
    packet = wire.pack_event(ord("B"), 1, 2, 3, 4, 5)
    assert packet == b"B\x01\x02\x00\x03\x00\x00\x00\x04" + b"\x00" * 7 + b"\x05" + b"\x00" * 7
    assert wire.unpack_events(packet + packet) == [wire.Event(ord("B"), 1, 2, 3, 4, 5)] * 2
    for bad in (b"", packet[1:], packet + b"x"):
        with pytest.raises(ValueError, match="24 bytes"):
            wire.unpack_events(bad)


def test_knows_every_field_of_a_job_spec() -> None:
    full = {name: 1 for name in spec.FIELDS if name not in ("pp", "microbatches")}
    assert spec.complete({**full, "pp": 1, "microbatches": 1}, None)
    assert json.loads(wire.pack_control({"a": "ü"})) == {"a": "ü"}
