"""A Python rank in a group of Rust ranks: makes every collective once, through torch.distributed."""

import os
import sys

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()

    numbers = torch.tensor([rank + 1.0, 10.0], dtype=torch.float64)
    dist.all_reduce(numbers)
    expect(numbers.tolist() == [world_size * (world_size + 1) / 2, 10.0 * world_size], numbers)

    words = torch.full((3,), rank, dtype=torch.int64)
    dist.broadcast(words, src=1)
    expect(words.tolist() == [1, 1, 1], words)

    rows = [torch.empty(2, dtype=torch.float32) for _ in range(world_size)]
    dist.all_gather(rows, torch.full((2,), float(rank)))
    expect([row[0].item() for row in rows] == list(range(world_size)), rows)

    arrived = torch.zeros(4, dtype=torch.float32)
    dist.recv(arrived, src=0, tag=5)
    expect(arrived.tolist() == [0.0, 1.0, 2.0, 3.0], arrived)
    dist.send(arrived * 2, dst=0, tag=6)

    if "die" in sys.argv:
        print("peer: dies", flush=True)
        os._exit(1)

    # 64 KiB to 4 MiB, so that a message has more than one packet.
    for exponent in range(14, 21, 3):
        large = torch.full((2**exponent,), float(rank), dtype=torch.float32)
        dist.all_reduce(large, op=dist.ReduceOp.MAX)
        expect(bool((large == world_size - 1).all()), large)
    dist.barrier()
    # This rank must exit last; see python.rs.
    for other in range(world_size):
        if other != rank:
            dist.recv(torch.zeros(1), src=other, tag=9)
    print("peer: done", flush=True)
    dist.destroy_process_group()


def expect(right: bool, found: object) -> None:
    if not right:
        sys.exit(f"peer: rank {dist.get_rank()} found {found}")


main()
