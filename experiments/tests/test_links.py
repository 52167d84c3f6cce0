"""A link between two nodes delays packets."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "trainer" / "bench"))
from limits import Nodes

DELAY_MS, BYTES = 15, 1 << 20
ADDRESS = Nodes.node(1)[2]
# Echoes a byte, and answers many bytes by one.
SERVER = f"""
import socket
listener = socket.create_server(("{ADDRESS}", 5001))
listener.settimeout(60)
print("ready", flush=True)
connection, _ = listener.accept()
connection.settimeout(60)
connection.sendall(connection.recv(1))
n_bytes = 0
while n_bytes < {BYTES}:
    received = connection.recv(65536)
    assert received, "the client ended"
    n_bytes += len(received)
connection.sendall(b"x")
"""
CLIENT = f"""
import socket, time
connection = socket.create_connection(("{ADDRESS}", 5001))
begin = time.monotonic()
connection.sendall(b"x")
connection.recv(1)
print(time.monotonic() - begin)
connection.sendall(bytes({BYTES}))
connection.recv(1)
"""


class Links(unittest.TestCase):
    def test_packets_are_delayed_and_all_arrive(self):
        if os.getuid() != 0 or not shutil.which("ip"):
            print("SKIPPED links: requires root and ip(8)")
            self.skipTest("requires root and ip(8)")
        self.assertGreaterEqual(round_trip_s(Nodes("none", DELAY_MS), client=0), 2 * DELAY_MS / 1000)
        # The last of four nodes reaches the second one.
        self.assertGreater(round_trip_s(Nodes("1gbit", count=4), client=3), 0)


def round_trip_s(nodes: Nodes, client: int) -> float:
    """Seconds until a byte from a node to the second one is back. Many bytes follow it."""
    try:
        server, client = ([*nodes.within(nodes.names[number]), sys.executable, "-c"] for number in (1, client))
        with subprocess.Popen([*server, SERVER], stdout=subprocess.PIPE, text=True) as serving:
            assert serving.stdout.readline() == "ready\n"
            round_trip = subprocess.run([*client, CLIENT], stdout=subprocess.PIPE, text=True, check=True).stdout
        assert serving.returncode == 0
        return float(round_trip)
    finally:
        nodes.delete()


if __name__ == "__main__":
    unittest.main()
