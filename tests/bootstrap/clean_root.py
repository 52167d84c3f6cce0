"""The Debian file tree in .deps/root, in which commands run as root: in namespaces, without a network."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
TREE = PROJECT / ".deps/root"
# Where EMR puts an action. No other file of the project is in the tree.
ACTIONS = "/emr/instance-controller/lib/bootstrap-actions/1"
DOUBLES = "/doubles"
# Time limit of commands. The slowest, which makes a virtual environment, takes four seconds on an idle machine.
LIMIT_S = 240
# $0 is the folder of one system, $1 the tree, $2 options of overlayfs, $3 commands for bash, followed by folders of this machine
# that the commands can read under the same path. The root is a mount, so that df lists it.
ENTER = """
set -e
mount -t overlay -o "lowerdir=$1,upperdir=$0/changes,workdir=$0/work$2" overlay "$0/root"
cd "$0/root"
mount --rbind /dev dev
mount -t proc proc proc
commands=$3
shift 3
for folder in "$@"; do
    mkdir -p ".$folder"
    mount --bind "$folder" ".$folder"
    mount -o remount,bind,ro ".$folder"
done
exec chroot . /usr/bin/env -i PATH=/doubles:/usr/sbin:/usr/bin HOME=/root bash -c "$commands"
"""

# A Python program that makes network interfaces with these names, and the default route through one that starts with `+`. Then
# it runs the commands.
INTERFACES = """
import ctypes, fcntl, socket, struct, subprocess, sys
commands, *names = sys.argv[1:]
control, kept = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), []
fcntl.ioctl(control, 0x8914, struct.pack("16sH22x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running
for at, name in enumerate(names):
    kept.append(open("/dev/net/tun", "r+b", buffering=0))
    device = name.lstrip("+").encode()
    fcntl.ioctl(kept[-1], 0x400454CA, struct.pack("16sH14x", device, 0x1001))  # TUNSETIFF
    address = lambda last: struct.pack("H2x4s8x", socket.AF_INET, bytes([10, 0, at, last]))
    fcntl.ioctl(control, 0x8916, struct.pack("16s16s8x", device, address(2)))  # SIOCSIFADDR
    fcntl.ioctl(control, 0x8914, struct.pack("16sH22x", device, 0x41))
    if name.startswith("+"):
        text = ctypes.create_string_buffer(device)
        nowhere = struct.pack("H14x", socket.AF_INET)
        route = struct.pack("L16s16s16sHhLPhPLLH", 0, nowhere, nowhere, nowhere, 1, 0, 0, 0, 0, ctypes.addressof(text), 0, 0, 0)
        fcntl.ioctl(control, 0x890B, route)  # SIOCADDRT
sys.exit(subprocess.run(["bash", "-c", commands]).returncode)
"""


def entrance() -> tuple[list[str], str]:
    """The command that starts others as root in namespaces of their own, and options of overlayfs in them."""
    command, options = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"], ""
    if os.getuid() != 0:
        command.insert(1, "--map-root-user")
        options = ",userxattr"
    return command, options


def skip(why: str) -> None:
    """Skips a test that cannot run here. In CI, this is a failure."""
    if os.environ.get("CI"):
        raise AssertionError(f"SKIPPED {why}")
    print(f"SKIPPED {why}", flush=True)
    raise unittest.SkipTest(why)


class CleanRoot:
    """A new system. Files that a command writes are kept for the next command; processes and mounts are not."""

    def __init__(self, *folders: pathlib.Path) -> None:
        self.folders = folders
        if not (TREE / "usr/bin/bash").exists():
            skip("bootstrap: .deps/root is missing; bootstrap/laptop.sh root installs it")
        self.place = tempfile.TemporaryDirectory(prefix="clean-root-")
        self.folder = pathlib.Path(self.place.name)
        # Files that differ from those of the tree.
        self.changes = self.folder / "changes"
        for name in ("root", "changes", "work"):
            (self.folder / name).mkdir()
        self.changes.chmod(0o755)
        if shutil.which("unshare") is None or self.run("true").returncode != 0:
            self.close()
            skip("bootstrap: namespaces or overlayfs are not permitted here; run the tests as root, outside a container")

    def close(self) -> None:
        # The kernel makes the folder work/work without permissions.
        for folder in self.folder.glob("work/*"):
            folder.chmod(0o700)
        self.place.cleanup()

    def deliver(self, action: str) -> str:
        """Copies one file of bootstrap/ to the place where EMR puts it, and returns that path."""
        path = f"{ACTIONS}/{pathlib.Path(action).name}"
        self.write(path, (PROJECT / "bootstrap" / action).read_bytes(), 0o700)
        return path

    def write(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        file = self.changes / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        file.chmod(mode)

    def double(self, name: str, script: str) -> None:
        """Puts a program of this name before those of the system on the PATH."""
        self.write(f"{DOUBLES}/{name}", f"#!/bin/bash\n{script}\n", 0o755)

    def read(self, path: str) -> str:
        return (self.changes / path.lstrip("/")).read_text()

    def run(self, commands: str) -> subprocess.CompletedProcess:
        """Runs commands of bash in the tree."""
        command, options = entrance()
        command += ["bash", "-c", ENTER, self.folder, TREE, options, commands, *self.folders]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)

    def state(self) -> dict[str, str]:
        """Digests of the files, and targets of the links, that differ from the tree, outside folders for temporary files."""
        found = {}
        for folder, folders, files in os.walk(self.changes):
            folders[:] = [name for name in folders if name not in ("dev", "proc", "tmp", "__pycache__")]
            for name in files + folders:
                path = pathlib.Path(folder, name)
                mode = path.lstat().st_mode
                content = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                found[str(path.relative_to(self.changes))] = f"{mode:o} {content}"
        return found


def facts(done: subprocess.CompletedProcess) -> dict:
    """The last line of standard output. It is reported however an action ends."""
    assert done.stdout, f"exit code {done.returncode}, nothing on standard output\n{done.stderr}"
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["ok"] == (done.returncode == 0), f"{found}, exit code {done.returncode}\n{done.stderr}"
    return found


class ActionTest(unittest.TestCase):
    """A test that runs actions in a new system."""

    # Folders of this machine that the commands read.
    FOLDERS: tuple[pathlib.Path, ...] = ()

    def setUp(self):
        self.root = CleanRoot(*self.FOLDERS)
        self.addCleanup(self.root.close)

    def refused(self, commands: str, code: int, message: str) -> dict:
        done = self.root.run(commands)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)
        found = facts(done)
        self.assertIn(message, found["error"])
        return found
