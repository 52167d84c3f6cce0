"""The actions of bootstrap/gpu-node/ in a clean root, each delivered as one file."""

import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import zipfile

from clean_root import INTERFACES, PROJECT, ActionTest, facts, skip

class GpuCheck(ActionTest):
    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("gpu-node/gpu-check.sh")

    def machine(self, *gpus: str) -> None:
        self.root.double("nvidia-smi", f"""
            [ "$*" = '--query-gpu=driver_version,compute_cap,memory.total,name --format=csv,noheader,nounits' ] || exit 2
            printf '%s\\n' {' '.join(f"'{gpu}'" for gpu in gpus)}""")

    def test_gpus_of_the_pinned_pytorch_pass_twice(self):
        self.machine("580.82.07, 7.5, 15360, Tesla T4", "580.82.07, 9.0, 81559, NVIDIA H100 80GB HBM3")
        for _ in range(2):
            found = facts(self.root.run(f"{self.action} --gpus-min 2"))
            self.assertEqual(found["driver"], "580.82.07")
            self.assertEqual(found["gpus"], [
                {"name": "Tesla T4", "capability": "7.5", "memory_bytes": 15360 << 20},
                {"name": "NVIDIA H100 80GB HBM3", "capability": "9.0", "memory_bytes": 81559 << 20},
            ])

    def test_gpus_that_cuda_13_dropped_are_refused(self):
        for driver, capability, name in [("470.57.02", "3.7", "Tesla K80"), ("580.82.07", "5.2", "Tesla M60"), ("580.82.07", "7.0", "Tesla V100-SXM2-16GB")]:
            with self.subTest(name):
                self.machine(f"{driver}, {capability}, 16160, {name}")
                self.refused(self.action, 78, f"{name} has compute capability {capability}, expected 7.5 or newer: choose a g4dn")

    def test_a_machine_without_what_is_needed_is_refused(self):
        self.refused(self.action, 78, "nvidia-smi was not found, expected NVIDIA's driver 580.65 or newer")
        self.machine("570.86.15, 9.0, 81559, NVIDIA H100 80GB HBM3")
        self.refused(self.action, 78, "driver 570.86.15, expected 580.65 or newer")
        self.machine("580.82.07, 9.0, 81559, NVIDIA H100 80GB HBM3")
        self.refused(f"{self.action} --gpus-min 4", 78, "1 GPUs, expected at least 4")
        self.root.double("nvidia-smi", "echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2")
        self.refused(self.action, 78, "the driver is older than 510")
        self.root.double("nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
        self.refused(self.action, 75, "nvidia-smi failed: Failed to initialize NVML")


class WithWheels(ActionTest):
    """The wheel is a small one with PyTorch's name. The wheels of PyTorch are 2.4 GB."""

    def wheelhouse(self, version: str = "2.11.0", requirement: str = "") -> None:
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as files:
            for name, content in {
                "torch/__init__.py": f'from types import SimpleNamespace as N\n__version__ = "{version}+cu130"\nversion, cuda = N(cuda="13.0"), N(is_available=lambda: False)\n',
                "torch/lib/libtorch_cpu.so": "",
                "nvidia/cu13/lib/libcudart.so.13": "",
                f"torch-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
                f"torch-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                f"torch-{version}.dist-info/RECORD": "",
            }.items():
                files.writestr(name, content)
        digest = hashlib.sha256(wheel.getvalue()).hexdigest()
        self.root.write(f"/wheels/torch-{version}-py3-none-any.whl", wheel.getvalue())
        self.root.write("/wheels/requirements.txt", requirement or f"torch=={version} \\\n    --hash=sha256:{digest}\n")


class PyTorch(WithWheels):
    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("gpu-node/pytorch.sh")

    def test_wheels_are_installed_once_and_never_from_the_network(self):
        self.wheelhouse()
        found = facts(self.root.run(f"{self.action} --wheelhouse /wheels"))
        self.assertEqual((found["torch"], found["cuda"], found["gpu_usable"], found["kept"]), ("2.11.0+cu130", "13.0", False, False))
        packages = "/opt/sentimill/torch/lib/python3.11/site-packages"
        self.assertEqual(self.root.read("/etc/sentimill/torch.env"), f"LD_LIBRARY_PATH={packages}/torch/lib:{packages}/nvidia/cu13/lib\n")
        before = self.root.state()
        # In S3 are the same wheels, so only their list is fetched.
        self.root.double("aws", '[ "$*" = "s3 cp --only-show-errors s3://wheels/2.11.0/requirements.txt ${!#}" ] && cp /wheels/requirements.txt "${!#}"')
        found = facts(self.root.run(f"{self.action} --wheelhouse s3://wheels/2.11.0/"))
        self.assertTrue(found["kept"])
        after = self.root.state()
        del after["doubles/aws"], after["doubles"]
        self.assertEqual(after, before)

    def test_wheels_that_are_not_the_pinned_ones_are_refused(self):
        self.refused(f"{self.action} --wheelhouse /missing", 66, "/missing/requirements.txt: not found")
        self.wheelhouse("2.10.0")
        self.refused(f"{self.action} --wheelhouse /wheels", 66, "torch 2.10.0, expected 2.11.0")
        self.wheelhouse(requirement=f"torch==2.11.0 --hash=sha256:{'0' * 64}\n")
        done = self.root.run(f"{self.action} --wheelhouse /wheels")
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn("/wheels: a wheel is missing or its SHA-256 differs", facts(done)["error"])
        self.assertNotIn("/opt/sentimill/torch/stamp", self.root.state())
        self.wheelhouse()
        self.refused(f"{self.action} --wheelhouse /wheels --sha256 {'0' * 64}", 66, f"expected {'0' * 64}; copy bootstrap/requirements/torch.txt")

    def test_missing_tools_are_named(self):
        self.refused(self.action, 64, "--wheelhouse is missing")
        self.refused(f"{self.action} --wheelhouse /wheels --sha256 ''", 64, "--sha256 without a value: expected 64 hexadecimal digits")
        self.refused(f"{self.action} --wheelhouse s3://wheels/2.11.0", 78, "aws was not found on the PATH")
        self.refused(f"{self.action} --wheelhouse https://user:secret@pypi.example/simple", 64, "expected an absolute path or s3://BUCKET/PREFIX")
        self.root.double("aws", "echo 'fatal error: Unable to locate credentials' >&2; exit 1")
        done = self.root.run(f"{self.action} --wheelhouse s3://wheels/2.11.0")
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("s3://wheels/2.11.0/requirements.txt: could not be read", facts(done)["error"])
        self.assertEqual([name for name in self.root.state() if "wheels." in name], [])
        self.refused(f"{self.action} --wheelhouse /wheels --python python2", 78, "python2 has no module venv")

    def test_the_version_is_the_pinned_one(self):
        for name in ("torch", "libtorch"):
            pinned = re.search(r"^torch==(\S+)", (PROJECT / f"bootstrap/requirements/{name}.txt").read_text(), re.MULTILINE)[1]
            self.assertIn(f"\nTORCH={pinned}\n", (PROJECT / "bootstrap/gpu-node/pytorch.sh").read_text())


class StartUp(WithWheels):
    """The start-up script that `emr gpus` prints."""

    FILES = "/store/bucket/gpus"

    def start_up(self, listed: dict[str, bytes]) -> str:
        """The command that starts a machine, whose files in S3 have these digests."""
        emr = pathlib.Path(os.environ.get("SENTIMILL_PROGRAMS", PROJECT / "target/debug"), "emr")
        if not emr.exists():
            skip(f"bootstrap: {emr} is missing; make build builds it")
        sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in listed.items())
        example = (PROJECT / "emr/src/job/example.toml").read_text()
        example = re.sub(r'(?m)^sha256 = "\w+"', f'sha256 = "{hashlib.sha256(sums.encode()).hexdigest()}"', example)
        with tempfile.TemporaryDirectory() as place:
            job = pathlib.Path(place, "JOB.toml")
            job.write_text(example.replace("\n[gpus]", '\n[gpus]\nshared = "efs://fs-0123"', 1))
            script = subprocess.run([emr.resolve(), "gpus", job, "--user-data"], check=True, capture_output=True, text=True).stdout
        self.root.write(f"{self.FILES}/SHA256SUMS", sums)
        self.root.double("aws", 'from=${*: -2:1}; from=/store/${from#s3://}; [ ! -d "$from" ] || from+=/.; cp -r "$from" "${!#}"')
        self.root.double("nvidia-smi", "yes '580.82.07, 8.9, 23034, NVIDIA L4' | head -n 4")
        self.root.write("/usr/sbin/mount.nfs4", SharedFolder.CLIENT, 0o755)
        self.root.write("/user-data.sh", script)
        # cloud-init sets neither HOME nor a terminal.
        return f"cp -r /wheels {self.FILES}/wheelhouse; env -u HOME bash /user-data.sh"

    def files(self) -> dict[str, bytes]:
        """Puts the files into S3, and returns their contents."""
        self.wheelhouse()
        files = {file.name: file.read_bytes() for file in (PROJECT / "bootstrap/gpu-node").glob("*.sh")}
        files["trainer"] = b"#!/bin/sh\n"
        for name, content in files.items():
            self.root.write(f"{self.FILES}/{name}", content)
        return files | {"wheelhouse/requirements.txt": self.root.read("/wheels/requirements.txt").encode()}

    def test_the_script_of_emr_gpus_prepares_a_machine(self):
        done = self.root.run(self.start_up(self.files()))
        self.assertEqual(done.returncode, 0, done.stderr)
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([report["action"] for report in reports], ["gpu-check", "pytorch", "nccl", "shared-folder"])
        self.assertEqual([report["ok"] for report in reports], [True] * 4)
        self.assertLessEqual({"etc/sentimill/torch.env", "etc/sentimill/nccl.env", "etc/fstab", "usr/local/bin/trainer"}, set(self.root.state()))

    def test_a_file_that_was_exchanged_in_s3_is_not_run(self):
        for name in ["trainer", "gpu-check.sh", "pytorch.sh", "wheelhouse/requirements.txt", "SHA256SUMS"]:
            with self.subTest(name):
                files = self.files()
                start = self.start_up(files)
                if name == "SHA256SUMS":
                    self.root.write(f"{self.FILES}/{name}", "")
                elif name.startswith("wheelhouse/"):
                    self.root.write(f"/wheels/{name.split('/')[1]}", files[name] + b"# other\n")
                else:
                    self.root.write(f"{self.FILES}/{name}", b"#!/bin/sh\ntouch /exchanged\n")
                done = self.root.run(start)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertNotIn("exchanged", self.root.state())
                self.assertNotIn("usr/local/bin/trainer", self.root.state())
                self.root.run(f"rm -rf {self.FILES} /opt/sentimill")

    def test_a_file_that_is_not_listed_is_not_run(self):
        files = self.files()
        del files["trainer"]
        done = self.root.run(self.start_up(files))
        self.assertEqual((done.returncode, done.stdout), (66, ""))
        self.assertIn("SHA256SUMS: trainer is missing", done.stderr)


class Nccl(ActionTest):
    ENV = "/etc/sentimill/nccl.env"

    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("gpu-node/nccl.sh")
        self.root.write("/interfaces.py", INTERFACES)

    def among(self, *interfaces: str, arguments: str = "") -> str:
        return f"python3 /interfaces.py '{self.action} {arguments}' {' '.join(interfaces)}"

    def test_the_interface_of_the_default_route_is_written_once(self):
        # Docker's interface comes first in the list of the kernel.
        machine = self.among("docker0", "+ens5")
        found = facts(self.root.run(machine))
        self.assertEqual((found["interface"], found["rdma"], found["efa"], found["kept"]), ("ens5", False, False, False))
        self.assertEqual(self.root.read(self.ENV), "NCCL_SOCKET_IFNAME==ens5\nGLOO_SOCKET_IFNAME=ens5\nNCCL_DEBUG=WARN\nNCCL_IB_DISABLE=1\n")
        before = self.root.state()
        self.assertTrue(facts(self.root.run(machine))["kept"])
        self.assertEqual(self.root.state(), before)
        read = self.root.run(f"set -a; . {self.ENV}; env | grep NCCL_SOCKET")
        self.assertEqual(read.stdout, "NCCL_SOCKET_IFNAME==ens5\n")

    def test_an_interface_is_not_guessed_among_several(self):
        self.refused(self.among("ens5", "ens6"), 78, "no default route and several interfaces (lo ens5 ens6)")
        self.assertEqual(facts(self.root.run(self.among("ens5")))["interface"], "ens5")
        self.assertEqual(facts(self.root.run(self.among("ens5", "ens6", arguments="--interface ens6")))["interface"], "ens6")
        self.refused(self.among("ens5", arguments="--interface eth0"), 78, "--interface eth0: not found, expected one of lo ens5")
        # One machine without a network.
        self.assertEqual(facts(self.root.run(self.action))["interface"], "lo")

    def test_an_elastic_fabric_adapter_is_used(self):
        self.root.write("/sys/class/infiniband/rdmap16s27/node_type", "1: CA")
        without = self.root.run(self.action)
        self.assertEqual((facts(without)["rdma"], facts(without)["efa"]), (True, False))
        self.assertIn("but not aws-ofi-nccl", without.stderr)
        self.assertNotIn("FI_PROVIDER", self.root.read(self.ENV))
        plugin = "/opt/amazon/ofi-nccl/lib64/libnccl-net.so"
        self.root.write(plugin, "")
        found = facts(self.root.run(self.action))
        self.assertEqual((found["rdma"], found["efa"]), (True, True))
        self.assertIn(f"FI_PROVIDER=efa\nNCCL_NET_PLUGIN={plugin}\n", self.root.read(self.ENV))
        self.assertNotIn("NCCL_IB_DISABLE", self.root.read(self.ENV))

    def test_the_plugin_of_ubuntu_is_found(self):
        self.root.write("/sys/class/infiniband/rdmap16s27/node_type", "1: CA")
        plugin = "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so"
        self.root.write(plugin, "")
        self.assertTrue(facts(self.root.run(self.action))["efa"])
        self.assertIn(f"NCCL_NET_PLUGIN={plugin}\n", self.root.read(self.ENV))


class SharedFolder(ActionTest):
    # The program that mount executes for NFS: `mount.nfs4 HOST:/PATH FOLDER -o OPTIONS`.
    CLIENT = '#!/bin/bash\necho "$*" >>/mounts; mount -t tmpfs "$1" "$2"\n'
    FROM = "fs-0123.efs.us-east-1.amazonaws.com:/"

    def setUp(self):
        super().setUp()
        self.action = self.root.deliver("gpu-node/shared-folder.sh")

    def test_the_folder_is_mounted_once(self):
        self.root.write("/usr/sbin/mount.nfs4", self.CLIENT, 0o755)
        done = self.root.run(f"{self.action} --from {self.FROM} && {self.action} --from {self.FROM} --at /mnt/shared/")
        first, second = done.stdout.splitlines()
        self.assertIn('"at":"/mnt/shared","kept":false', first)
        self.assertIn('"at":"/mnt/shared","kept":true', second)
        options = "nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"
        self.assertEqual(self.root.read("/mounts"), f"{self.FROM} /mnt/shared -o rw,{options}\n")
        self.assertEqual(self.root.read("/etc/fstab"), f"{self.FROM} /mnt/shared nfs4 {options},_netdev,nofail 0 0\n")
        # After a restart, when systemd has not mounted it.
        facts(self.root.run(f"{self.action} --from {self.FROM}"))
        self.assertEqual(len(self.root.read("/etc/fstab").splitlines()), 1)

    def test_another_mount_is_not_covered(self):
        self.root.write("/usr/sbin/mount.nfs4", self.CLIENT, 0o755)
        done = self.root.run(f"mkdir /data; mount -t tmpfs 10.0.0.5:/other /data; {self.action} --from {self.FROM} --at /data")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("/data: 10.0.0.5:/other is mounted there", done.stderr)
        self.assertNotIn("mounts", self.root.state())

    def test_a_server_that_refuses_and_a_missing_client_are_named(self):
        self.refused(f"{self.action} --from {self.FROM}", 78, "/sbin/mount.nfs4: not found, expected the NFS client")
        self.root.write("/usr/sbin/mount.nfs4", "#!/bin/bash\necho 'mount.nfs4: Connection refused' >&2; exit 32\n", 0o755)
        self.refused(f"{self.action} --from {self.FROM}", 69, "could not be mounted: mount.nfs4: Connection refused")
        self.assertNotIn("sentimill", self.root.read("/etc/fstab") if "etc/fstab" in self.root.state() else "")
        self.refused(f"{self.action} --from /data", 64, "--from /data: expected HOST:/PATH")


class Equal(unittest.TestCase):
    """An action is one file, so some functions are in several. Each copy must be the same."""

    def test_functions_of_the_same_name_are_equal_in_all_actions(self):
        copies: dict[str, dict[str, str]] = {}
        for file in [*PROJECT.glob("bootstrap/emr/*.sh"), *PROJECT.glob("bootstrap/gpu-node/*.sh")]:
            for section in re.split(r"\n(?=# --- )", file.read_text())[1:]:
                copies.setdefault(section.splitlines()[0], {})[file.name] = section.split('\nmain "$@"')[0].strip()
        self.assertGreaterEqual(len(copies), 3)
        for title, sections in copies.items():
            self.assertEqual(len(set(sections.values())), 1, f"{title}: differs among {sorted(sections)}")
            self.assertGreaterEqual(len(sections), 3, title)


if __name__ == "__main__":
    unittest.main()
