from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator

import pytest

NAMES = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "PERSEUS_JOB",
    "PERSEUS_AGENT_SOCKET",
    "CUDA_VISIBLE_DEVICES",
    "MASTER_ADDR",
    "MASTER_PORT",
]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def socket_path() -> Iterator[str]:
    # Not pytest's own folders: a socket's path has to be short.
    folder = tempfile.mkdtemp(prefix="perseus")
    yield folder + "/agent.sock"
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), f"{thread.name} goes on after the test"
