"""Trains nothing with the real client of Zeus's pipeline frequency optimizer, one process a rank.

Real are zeus's PipelineFrequencyOptimizer, its FrequencyController with its process, and httpx. Stand-ins are PyTorch
(only the five functions that the client calls) and the GPUs (which note what is asked of them). The order of
instructions is 1F1B, written here anew so that it can contradict the server's.

Prints one JSON object: for each rank its job id, the schedule that it got and the clocks that its GPU was set to.
"""

import argparse
import json
import multiprocessing as mp
import os
import sys
import types
import warnings


def stub_torch():
    """Puts a torch into sys.modules that does nothing."""
    torch = types.ModuleType("torch")
    torch.cuda = types.ModuleType("torch.cuda")
    torch.cuda.is_available = lambda: True
    torch.cuda.set_device = lambda device: None
    torch.cuda.synchronize = lambda device=None: None
    torch.distributed = types.ModuleType("torch.distributed")
    torch.distributed.is_initialized = lambda: True
    sys.modules.update({"torch": torch, "torch.cuda": torch.cuda, "torch.distributed": torch.distributed})


def broadcast_through(rank, box):
    """Lets torch.distributed broadcast through box, a queue for each rank."""

    def broadcast_object_list(objects, src=0):
        if rank == src:
            for queue in box:
                queue.put(list(objects))
        objects[:] = box[rank].get(timeout=60)

    sys.modules["torch.distributed"].broadcast_object_list = broadcast_object_list


class GPUs:
    """As much of zeus.device's GPUs as the client uses. The clocks that are set go to a file: it has two processes."""

    def __init__(self, log, clocks):
        self.log, self.clocks = log, clocks

    def note(self, *what):
        with open(self.log, "a") as f:
            f.write(json.dumps(what) + "\n")

    def get_supported_memory_clocks(self, index):
        return [810, 1215]

    def get_supported_graphics_clocks(self, index, memory=None):
        return list(self.clocks)

    def reset_power_management_limit(self, index, block=True):
        self.note("reset_power")

    def set_memory_locked_clocks(self, index, low, high, block=True):
        self.note("memory", low, high)

    def reset_memory_locked_clocks(self, index, block=True):
        self.note("reset_memory")

    def set_gpu_locked_clocks(self, index, low, high, block=True):
        self.note("lock", low, high)

    def reset_gpu_locked_clocks(self, index, block=True):
        self.note("reset")


def one_f_one_b(pp, stage, microbatches):
    """The names of a stage's instructions in 1F1B."""
    warm = min(pp - 1 - stage, microbatches)
    names = ["forward"] * warm
    for _ in range(microbatches - warm):
        names += ["forward", "backward"]
    return names + ["backward"] * warm


def train(args, rank, box, log, results):
    """What a rank's training process does."""
    broadcast_through(rank, box)
    import zeus.device.gpu as device

    device._gpus = GPUs(log, args.clocks)
    from zeus.optimizer.pipeline_frequency import PipelineFrequencyOptimizer

    tp_rank = rank % args.tp
    dp_rank = rank // args.tp % args.dp
    pp_rank = rank // args.tp // args.dp
    try:
        client = PipelineFrequencyOptimizer(
            rank=rank,
            dp_rank=dp_rank,
            pp_rank=pp_rank,
            tp_rank=tp_rank,
            device_id=0,
            dp_degree=args.dp,
            pp_degree=args.pp,
            tp_degree=args.tp,
            world_size=args.pp * args.dp * args.tp,
            server_url=args.url,
            job_metadata=args.metadata or None,
        )
        for _ in range(args.steps):
            client.on_step_begin()
            for name in one_f_one_b(args.pp, pp_rank, args.microbatches):
                client.on_instruction_begin(name)
                client.on_instruction_end(name)
            client.on_step_end()
        client.frequency_controller.end()
        client.frequency_controller._proc.join(60)
        results.put({"rank": rank, "pp_rank": pp_rank, "job": client.job_id, "schedule": client.freq_schedule})
    except Exception as err:  # the client's own word is the result
        results.put({"rank": rank, "pp_rank": pp_rank, "error": f"{type(err).__name__}: {err}"})
        for queue in box if rank == 0 else []:
            queue.put([None])
        results.close()
        results.join_thread()
        os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--pp", type=int, required=True)
    parser.add_argument("--dp", type=int, required=True)
    parser.add_argument("--tp", type=int, required=True)
    parser.add_argument("--microbatches", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--metadata", default="")
    parser.add_argument("--clocks", type=lambda s: [int(c) for c in s.split(",")], required=True)
    parser.add_argument("--dir", required=True)
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    # Loaded once, before the ranks are forked: pandas and pydantic take their time.
    stub_torch()
    import zeus.device.gpu  # noqa: F401
    import zeus.optimizer.pipeline_frequency  # noqa: F401

    fork = mp.get_context("fork")
    world = args.pp * args.dp * args.tp
    box = [fork.Queue() for _ in range(world)]
    results = fork.Queue()
    logs = [os.path.join(args.dir, f"gpu-{rank}.jsonl") for rank in range(world)]
    ranks = [fork.Process(target=train, args=(args, r, box, logs[r], results)) for r in range(world)]
    for process in ranks:
        process.start()
    found = sorted((results.get(timeout=100) for _ in ranks), key=lambda r: r["rank"])
    for process in ranks:
        process.join(60)
    for result, log in zip(found, logs):
        result["gpu"] = [json.loads(line) for line in open(log)] if os.path.exists(log) else []
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
