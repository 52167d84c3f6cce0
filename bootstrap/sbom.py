#!/usr/bin/env python3
"""Writes a CycloneDX list of the packages linked into a program, with name, version, licence and origin, for all
platforms. The list depends only on the source: time, path and author are removed.

usage: bootstrap/sbom.py FOLDER PROGRAM ...
  FOLDER  output folder of PROGRAM.cdx.json
"""

import json
import pathlib
import subprocess
import sys


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1])
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for program in sys.argv[2:]:
        command = [".deps/bin/cargo-sbom", "--cargo-package", program, "--output-format", "cyclone_dx_json_1_6"]
        listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        listed.pop("serialNumber", None)
        for varying in ("timestamp", "authors"):
            listed["metadata"].pop(varying, None)
        listed["components"].sort(key=lambda component: component["bom-ref"])
        listed["dependencies"].sort(key=lambda dependency: dependency["ref"])
        for dependency in listed["dependencies"]:
            dependency.get("dependsOn", []).sort()
        if not listed["components"]:
            sys.exit(f"sbom: {program}: no packages found, expected a package of this workspace")
        (folder / f"{program}.cdx.json").write_text(json.dumps(listed, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
