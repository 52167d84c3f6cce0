#!/usr/bin/env python3
"""Connects two network namespaces by a link with a delay, until it is terminated.

usage: delayed_link.py NAMESPACE:INTERFACE NAMESPACE:INTERFACE MILLISECONDS

It makes a TUN interface in each namespace, and writes each packet of one into the other after the delay: a round trip takes
twice as long. It prints a line when both interfaces exist. Requires the right to make them, which root has.
"""

import ctypes
import errno
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PACKET_BYTES_MAX = 65536
PACKETS_AT_ONCE = 64


def main() -> None:
    *places, delay_ms = sys.argv[1:]
    ends = [interface(*place.split(":")) for place in places]
    print("ready", flush=True)
    forward(ends, float(delay_ms) / 1000)


def interface(namespace: str, name: str) -> int:
    """Makes an interface, and returns the file that has its packets."""
    with open(f"/run/netns/{namespace}") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), CLONE_NEWNET):
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), file.name)
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH14x", name.encode(), IFF_TUN | IFF_NO_PI))
    return end


def forward(ends: list[int], delay_s: float) -> None:
    """Writes the packets of each end into the other end after the delay."""
    others = {ends[0]: ends[1], ends[1]: ends[0]}
    # When they are due, and for which end.
    waiting: deque[tuple[float, int, bytes]] = deque()
    while True:
        rest = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], rest)[0]:
            for packet in packets(end):
                waiting.append((time.monotonic() + delay_s, others[end], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, packet = waiting.popleft()
            try:
                os.write(end, packet)
            except OSError as error:
                # An interface that is down, or whose queue is full, loses packets, as a real one does.
                if error.errno not in (errno.EIO, errno.EAGAIN):
                    raise


def packets(end: int):
    """The packets that have arrived, up to a number, so that those that are due do not wait for them."""
    for _ in range(PACKETS_AT_ONCE):
        try:
            yield os.read(end, PACKET_BYTES_MAX)
        except BlockingIOError:
            return


if __name__ == "__main__":
    main()
