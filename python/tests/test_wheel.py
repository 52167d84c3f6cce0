"""The content of the wheel depends only on the sources, and is complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unittest
import zipfile

import support


class Wheel(unittest.TestCase):
    def test_two_builds_are_equal_and_install_the_package(self):
        wheels = [self.build("one", 0o022), self.build("two", 0o077)]
        self.assertEqual(wheels[0].read_bytes(), wheels[1].read_bytes())
        sources = (support.PROJECT / "python" / "sentimill").glob("*.*")
        expected = {f"sentimill/{source.name}" for source in sources}
        self.assertIn("sentimill/py.typed", expected)
        with zipfile.ZipFile(wheels[0]) as wheel:
            licences = {name.rpartition("/")[2] for name in wheel.namelist() if "/licenses/" in name}
            self.assertEqual(licences, {"LICENSE-APACHE", "LICENSE-MIT"})
            self.assertEqual({name for name in wheel.namelist() if ".dist-info/" not in name}, expected)
        target = support.folder() / "installed"
        install = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheels[0])]
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *install], check=True)
        say = f"import sentimill; print(sentimill.__file__, len(sentimill.open_dataset({str(support.small())!r})))"
        environment = os.environ | {"PYTHONPATH": str(target)}
        said = subprocess.run([sys.executable, "-B", "-c", say], env=environment, capture_output=True, text=True)
        self.assertEqual(said.stdout.split(), [str(target / "sentimill/__init__.py"), "60"], said.stderr)

    def build(self, name: str, umask: int):
        """Builds from a copy of the sources, in another folder, at another time and with another umask."""
        sources = support.folder() / name / "python"
        shutil.copytree(support.PROJECT / "python", sources, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        for source in sources.rglob("*.py"):
            source.chmod(0o666 & ~umask)
            os.utime(source, (umask, umask))
        command = [sys.executable, "-m", "flit_core.wheel", "--outdir", "..", "."]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "315532800"}
        subprocess.run(command, check=True, cwd=sources, env=environment, capture_output=True)
        (wheel,) = sources.parent.glob("*.whl")
        return wheel


if __name__ == "__main__":
    unittest.main()
