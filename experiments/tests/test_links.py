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
# Echoes a byte, and answers many bytes by one.
SERVER = f"""
import socket
listener = socket.create_server(("{Nodes.addresses[1]}", 5001))
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
connection = socket.create_connection(("{Nodes.addresses[1]}", 5001))
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
        nodes = Nodes("none", DELAY_MS)
        try:
            server, client = ([*nodes.within(name), sys.executable, "-c"] for name in reversed(nodes.names))
            with subprocess.Popen([*server, SERVER], stdout=subprocess.PIPE, text=True) as serving:
                self.assertEqual(serving.stdout.readline(), "ready\n")
                round_trip = subprocess.run([*client, CLIENT], stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertEqual(serving.returncode, 0)
            self.assertGreaterEqual(float(round_trip), 2 * DELAY_MS / 1000)
        finally:
            nodes.delete()


if __name__ == "__main__":
    unittest.main()
