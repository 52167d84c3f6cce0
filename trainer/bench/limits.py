"""Limits of ranks: quotas of CPU time, and links between nodes that are namespaces of this machine.

Both require the right to make them, which root has.
"""

import errno
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

PERIOD_US = 5_000
DELETE_S = 10
# Size of packets of a link with a delay: with 1,500, its process could not forward 1 Gbit/s.
DELAYED_BYTES_MAX = 9_000
V1, V1_TIMES, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup")


class Group:
    """A control group, version 1 or 2, with a quota of CPU time."""

    def __init__(self, name: str, percent: float):
        self.is_v1 = (V1 / "cpu.cfs_quota_us").exists()
        name = f"sentimill-{os.getpid()}-{name}"
        self.folder = (V1 if self.is_v1 else V2) / name
        # With version 1, another hierarchy, or the same one, counts the time.
        self.times = V1_TIMES / name if self.is_v1 else self.folder
        for folder in {self.folder, self.times}:
            folder.mkdir(exist_ok=True)
        self.limit(percent)

    def limit(self, percent: float) -> None:
        """Sets the quota, in percent of a core."""
        quota = round(PERIOD_US * percent / 100)
        if self.is_v1:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def enter(self) -> None:
        """Moves this process into the group."""
        self.add(os.getpid())

    def add(self, process: int) -> None:
        """Moves a process into the group, to which its later children belong too."""
        for folder in {self.folder, self.times}:
            (folder / "cgroup.procs").write_text(str(process))

    def cpu_s(self) -> float:
        """Seconds of processor time of all processes that are or were in the group."""
        if self.is_v1:
            return int((self.times / "cpuacct.usage").read_text()) / 1e9
        fields = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6

    def delete(self) -> None:
        """Deletes the group. Its processes must have ended; the kernel may take a moment until it has forgotten them."""
        for folder in {self.folder, self.times}:
            end = time.monotonic() + DELETE_S
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError as error:
                    if error.errno != errno.EBUSY or time.monotonic() > end:
                        raise
                    time.sleep(0.05)


class Nodes:
    """Network namespaces, each with a link of a rate that tc knows, such as 1gbit; `none`: not limited.

    Two are connected directly, and more by a bridge. With a delay, packets between two pass through delayed_link.py.
    """

    bridge, forwarder = "smillbr", None

    def __init__(self, rate: str, delay_ms: float = 0, count: int = 2):
        self.names, self.links, self.addresses = zip(*(self.node(number) for number in range(count)))
        if delay_ms and count != 2:
            sys.exit(f"a link with a delay connects 2 nodes, found {count}")
        self.delete()
        try:
            self.connect(rate, delay_ms)
        except BaseException:
            self.delete()
            raise

    @staticmethod
    def node(number: int) -> tuple[str, str, str]:
        """The names of a namespace and of its link, and its address."""
        return f"sentimill-{number}", f"smill{number}", f"10.93.7.{number + 1}"

    def connect(self, rate: str, delay_ms: float) -> None:
        """Makes the namespaces and their links."""
        for name in self.names:
            ip("netns", "add", name)
        if delay_ms:
            self.delayed(delay_ms)
        elif len(self.names) == 2:
            self.direct()
        else:
            self.bridged()
        for name, link, address in zip(self.names, self.links, self.addresses):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
            for each in (link, "lo"):
                ip("-n", name, "link", "set", each, "up")
            if rate != "none":
                limit = ["tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
                subprocess.run([*self.within(name), "tc", "qdisc", "add", "dev", link, "root", *limit], check=True)

    def direct(self) -> None:
        """Connects the namespaces by the kernel."""
        ip("link", "add", self.links[0], "type", "veth", "peer", "name", self.links[1])
        for name, link in zip(self.names, self.links):
            ip("link", "set", link, "netns", name)

    def bridged(self) -> None:
        """Connects the namespaces by a bridge of the kernel."""
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for name, link in zip(self.names, self.links):
            port = f"{link}-br"
            ip("link", "add", link, "type", "veth", "peer", "name", port)
            ip("link", "set", link, "netns", name)
            ip("link", "set", port, "master", self.bridge, "up")

    def delayed(self, delay_ms: float) -> None:
        """Connects two namespaces by a process that forwards each packet after the delay."""
        places = [f"{name}:{link}" for name, link in zip(self.names, self.links)]
        command = [sys.executable, Path(__file__).with_name("delayed_link.py"), *places, str(delay_ms)]
        self.forwarder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if self.forwarder.stdout.readline() != "ready\n":
            raise SystemExit(f"{command[1]}: exit code {self.forwarder.wait()}, expected a link")
        for name, link in zip(self.names, self.links):
            ip("-n", name, "link", "set", link, "mtu", str(DELAYED_BYTES_MAX))

    @staticmethod
    def within(name: str) -> list[str]:
        """The beginning of a command that runs in this namespace."""
        return ["ip", "netns", "exec", name]

    def of(self, number: int, count: int) -> list[str]:
        """The beginning of the command of one of some processes, which are divided among the nodes in their order."""
        return self.within(self.names[number * len(self.names) // count])

    def delete(self) -> None:
        """Deletes the namespaces and their links, if there are any."""
        if self.forwarder:
            self.forwarder.kill()
            self.forwarder.communicate()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", self.bridge], stderr=subprocess.DEVNULL)


def ip(*arguments: str) -> None:
    """Runs ip(8)."""
    subprocess.run(["ip", *arguments], check=True)


def environments(n_ranks: int, address: str = "127.0.0.1") -> list[dict[str, str]]:
    """The environments of ranks with one thread each, which meet at this address."""
    shared = {"WORLD_SIZE": str(n_ranks), "MASTER_ADDR": address, "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    return [os.environ | shared | {"RANK": str(rank)} for rank in range(n_ranks)]


def free_port() -> int:
    """A free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
