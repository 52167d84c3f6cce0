"""Measures all-reduces of increasing size, as one rank of a group. Rank 0 prints one JSON line per size.

The same calls as ../examples/all_reduce.rs.
"""

import json
import time

import torch
import torch.distributed as dist

ELEMENTS = [1, 1 << 8, 1 << 12, 1 << 16, 1 << 18, 1 << 21, 1 << 24]


def main() -> None:
    dist.init_process_group("gloo")
    for elements in ELEMENTS:
        tensor = torch.ones(elements, dtype=torch.float32)
        n_calls = calls_of(elements)
        for _ in range(n_calls // 10 + 1):
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
        times = []
        for _ in range(n_calls):
            begin = time.perf_counter()
            dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
            times.append(time.perf_counter() - begin)
        if dist.get_rank() == 0:
            times.sort()
            print(
                json.dumps({"bytes": 4 * elements, "median_s": times[n_calls // 2], "fastest_s": times[0]}),
                flush=True,
            )
    dist.barrier()
    dist.destroy_process_group()


def calls_of(elements: int) -> int:
    """Returns the number of calls that take about a quarter of a second."""
    if elements < 0x1000:
        return 3000
    return 300 if elements <= 0x40000 else 15


main()
