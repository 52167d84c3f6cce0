"""bootstrap/laptop.sh: repeated without a network, and with a file that is not the pinned one."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from clean_root import PROJECT, TREE, skip

LAPTOP = "bootstrap/laptop.sh"


class Laptop(unittest.TestCase):
    def run_without_network(self, project: pathlib.Path, *groups: str, **environment: str) -> subprocess.CompletedProcess:
        command = ["unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--net"]
        if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            skip("laptop: this user may not create namespaces; run the tests as root")
        return subprocess.run([*command, LAPTOP, "--json", *groups], cwd=project, env=os.environ | environment, capture_output=True, text=True)

    def test_a_second_run_needs_no_network_and_changes_nothing(self):
        if not TREE.exists():
            skip("bootstrap: .deps/root is missing; bootstrap/laptop.sh root installs it")
        before = os.stat(TREE).st_ctime_ns
        for _ in range(2):
            done = self.run_without_network(PROJECT, "root")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            found = json.loads(done.stdout)
            self.assertEqual((found["action"], found["ok"], found["groups"], found["installed"]), ("laptop", True, ["root"], False))
            self.assertEqual(found["folder"], str((PROJECT / ".deps").resolve()))
        self.assertEqual(os.stat(TREE).st_ctime_ns, before)

    def test_of_an_earlier_installation_only_what_is_asked_for_is_moved(self):
        if not TREE.exists():
            skip("bootstrap: .deps/root is missing; bootstrap/laptop.sh root installs it")
        with tempfile.TemporaryDirectory() as place:
            project, kept = pathlib.Path(place), pathlib.Path(place) / "kept"
            (project / "bootstrap/root").mkdir(parents=True)
            for file in [LAPTOP, "bootstrap/root/packages.sha256"]:
                shutil.copy(PROJECT / file, project / file)
            for name in ["root/etc", "bin"]:
                (kept / name).mkdir(parents=True)
            (kept / "bin/shellcheck").touch()
            shutil.copy(PROJECT / ".deps/root.stamp", kept / "root.stamp")
            done = self.run_without_network(project, "root", KEPT=str(kept))
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue((project / ".deps/root/etc").exists())
            self.assertTrue((kept / "bin/shellcheck").exists())
            self.assertFalse((project / ".deps/bin/shellcheck").exists())

    def test_a_package_that_is_not_the_pinned_one_is_refused(self):
        with tempfile.TemporaryDirectory() as place:
            project = pathlib.Path(place)
            (project / "bootstrap/root").mkdir(parents=True)
            shutil.copy(PROJECT / LAPTOP, project / LAPTOP)
            (project / "archive/pool").mkdir(parents=True)
            (project / "archive/pool/bash_5_amd64.deb").write_bytes(b"another")
            pinned = hashlib.sha256(b"pinned").hexdigest()
            (project / "bootstrap/root/packages.sha256").write_text(f"{pinned}  pool/bash_5_amd64.deb\n")
            done = self.run_without_network(project, "root", DEBIAN=f"file://{project}/archive")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("pool/bash_5_amd64.deb: SHA-256 differs from bootstrap/root/packages.sha256", done.stderr)
            found = json.loads(done.stdout)
            self.assertFalse(found["ok"])
            self.assertIn("packages of Debian could not be downloaded", found["error"])
            self.assertFalse((project / ".deps/root.stamp").exists())


if __name__ == "__main__":
    unittest.main()
