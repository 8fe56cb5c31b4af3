"""What a call costs the training process: python benchmarks/call_cost.py [CALLS]

Runs an agent that reads everything in a process of its own, as the real one does. Prints the median and the 99th
percentile of one call (an op's begin or its end), and which share of a 1 s step the calls of a rank come to.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "src"))

from perseus_client import PerseusClient, wire


def read_all(path: str, ready: Any) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(1)
    ready.set()
    connection, _ = listener.accept()
    connection.send(b'{"welcome":1,"generation":1,"heartbeat_s":5}')
    while connection.recv(wire.MAX_PACKET):
        pass


def work(seconds: float) -> None:
    """Keeps this core busy, as a training process that queues kernels does."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def measure(client: PerseusClient, calls: int, pause_s: float) -> list[float]:
    """Times of single calls in s, pause_s apart: an agent that has gone to sleep has to be woken."""
    times = []
    clock = time.perf_counter
    for microbatch in range(calls // 2):
        with client.step():
            op = client.op("forward", microbatch=microbatch)
            work(pause_s)
            begin = clock()
            op.__enter__()
            middle = clock()
            work(pause_s)
            last = clock()
            op.__exit__()
            times += [middle - begin, clock() - last]
    return times


def report(name: str, times: list[float]) -> None:
    times.sort()
    median = statistics.median(times)
    high = times[int(len(times) * 0.99)]
    shares = ", ".join(f"{m} microbatches {(4 * m + 2) * median * 100:.4f} %" for m in (8, 32, 96))
    print(f"{name:34} median {median * 1e6:6.2f} us   p99 {high * 1e6:6.2f} us   of a 1 s step: {shares}")


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    spec = {"pp": 1, "microbatches": 96, "world_size": 1}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "agent.sock")
        context = multiprocessing.get_context("spawn")
        ready = context.Event()
        agent = context.Process(target=read_all, args=(path, ready), daemon=True)
        agent.start()
        ready.wait()
        with PerseusClient(0, job="cost", spec=spec, socket_path=path) as client:
            report("agent listens, call after call", measure(client, calls, 0))
            report("agent listens, 1 ms between calls", measure(client, calls // 4, 0.001))
            print(f"dropped {client.dropped} of {client.sequence} events")
        agent.join()
        with PerseusClient(0, job="cost", spec=spec, socket_path=path + ".none") as client:
            report("no agent", measure(client, calls, 0))
        with PerseusClient(0, enabled=False) as client:
            report("off", measure(client, calls, 0))


if __name__ == "__main__":
    main()
