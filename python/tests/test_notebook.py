"""docs/notebook.ipynb runs in a kernel, with the files that the commands in its first cell write.

Outputs are compared with the committed ones, except those of cells tagged `varies`, which depend on the processor, and
the pixels of charts. UPDATE_GOLDEN=1 writes the outputs into the notebook.
"""

from __future__ import annotations

import os
import re
import subprocess
import unittest
from importlib.util import find_spec
from pathlib import Path

import support

NOTEBOOK = support.PROJECT / "docs" / "notebook.ipynb"
# The committed charts, in total.
IMAGE_BYTES_MAX = 150_000
CELL_SECONDS_MAX = 300


class Notebook(unittest.TestCase):
    def test_it_runs_with_the_files_of_its_commands_and_prints_what_is_committed(self):
        support.require(find_spec("nbclient") is not None, "nbclient")
        import nbformat
        from nbclient import NotebookClient
        from traitlets.config import Config

        folder = support.folder() / "notebook"
        folder.mkdir()
        committed = nbformat.read(NOTEBOOK, as_version=4)
        self.write_files(committed, folder)

        run = nbformat.from_dict(committed)
        environment = os.environ | {
            "PYTHONPATH": str(support.PROJECT / "python"),
            # A kernel and matplotlib otherwise write into the home folder.
            "IPYTHONDIR": str(folder / "ipython"),
            "MPLCONFIGDIR": str(folder / "matplotlib"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        os.environ["JUPYTER_RUNTIME_DIR"] = str(folder / "jupyter")
        # Sockets in a folder, so that no port is open.
        channels = Config(KernelManager={"transport": "ipc", "ip": str(folder / "kernel")})
        place = {"metadata": {"path": str(folder)}}
        client = NotebookClient(run, timeout=CELL_SECONDS_MAX, resources=place, record_timing=False, config=channels)
        client.execute(env=environment)

        if os.environ.get("UPDATE_GOLDEN"):
            # Without the version of this Python.
            run.metadata = committed.metadata
            nbformat.write(run, NOTEBOOK)
            committed = run
        code = [
            (cell, found) for cell, found in zip(committed.cells, run.cells, strict=True) if cell.cell_type == "code"
        ]
        n_charts = 0
        for cell, found in code:
            n_charts += charts(found)
            self.assertEqual(charts(found), charts(cell), f"charts of cell {cell.id}")
            if "varies" not in cell.metadata.get("tags", []):
                self.assertEqual(texts(found), texts(cell), f"output of cell {cell.id}")
        self.assertEqual(n_charts, 5)
        images = [
            output.data["image/png"]
            for cell, _ in code
            for output in cell.outputs
            if "image/png" in output.get("data", {})
        ]
        self.assertLess(sum(map(len, images)), IMAGE_BYTES_MAX)

    def write_files(self, notebook, folder: Path) -> None:
        """Runs the commands of the first cell."""
        commands = re.search(r"^```sh\n(.*?)^```$", notebook.cells[0].source, re.MULTILINE | re.DOTALL)
        self.assertIsNotNone(commands)
        names = [line.split()[0] for line in commands[1].splitlines()]
        places = {str(Path(support.program(name)).parent) for name in names}
        environment = os.environ | {"PATH": os.pathsep.join([*places, os.environ["PATH"]])}
        command = ["bash", "-euo", "pipefail", "-c", commands[1]]
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)


def charts(cell) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.outputs)


def texts(cell) -> list[str]:
    """Returns what a cell prints and its value, without the text that stands in for a chart."""
    printed = [output.text for output in cell.outputs if output.output_type == "stream"]
    values = [output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
    return ["".join(printed), *values]


if __name__ == "__main__":
    unittest.main()
