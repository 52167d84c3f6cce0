#!/usr/bin/env python3
"""Checks the wheel of python/: it is complete, works once installed, and its module requires no newer glibc.

usage: tests/wheel.py WHEEL GLIBC
"""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "python/sentimill"
# A file of fastText's magic number and version, and no more.
TRY = """\
import pathlib, sentimill
print(sentimill.__file__, sentimill.clean('<b>Don’t</b> buy: 10/10'))
model = pathlib.Path(sentimill.__file__).with_name('model.bin')
model.write_bytes((793712314).to_bytes(4, 'little') + (12).to_bytes(4, 'little'))
try:
    sentimill.load(model)
except sentimill.ModelError:
    print('refused')
"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1])
    wheel, glibc = pathlib.Path(sys.argv[1]), sys.argv[2]
    tag = f"-cp310-abi3-manylinux_{glibc.replace('.', '_')}_x86_64.whl"
    if not wheel.name.endswith(tag):
        sys.exit(f"{wheel}: its name ends otherwise, expected {tag}")
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    found = {name for name in names if ".dist-info/" not in name}
    sources = (path for path in PACKAGE.iterdir() if path.is_file() and path.suffix != ".so")
    expected = {f"sentimill/{path.name}" for path in sources} | {"sentimill/_native.abi3.so"}
    if found != expected:
        sys.exit(f"{wheel}: missing {sorted(expected - found)}, unexpected {sorted(found - expected)}")
    licences = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    if licences != {"LICENSE-APACHE", "LICENSE-MIT"}:
        sys.exit(f"{wheel}: the licences are {sorted(licences)}, expected LICENSE-APACHE and LICENSE-MIT")
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--target", folder, str(wheel)], check=True)
        command = [sys.executable, "-B", "-c", TRY]
        said = subprocess.run(command, env={"PYTHONPATH": folder}, capture_output=True, check=True, text=True).stdout
        module = pathlib.Path(folder, "sentimill/_native.abi3.so")
        module.chmod(0o755)
        subprocess.run([PROJECT / "tests/programs.sh", module.parent, glibc, module.name], check=True)
    if said != f"{folder}/sentimill/__init__.py don't buy\nrefused\n":
        sys.exit(f"{wheel}: after installation, this program prints {said!r}:\n{TRY}")
    print(f"{wheel}: complete, {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
