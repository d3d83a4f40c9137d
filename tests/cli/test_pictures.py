"""From images to a student by the commands of docs/pate.md."""

import re
import shutil
from pathlib import Path

import pytest

from conftest import SHARED

PAGE = Path(__file__).parents[2] / "docs" / "pate.md"


@pytest.mark.thorough
def test_mnist_by_the_commands_of_the_page(tmp_path, monkeypatch, run):
    pictures = SHARED / "mnist.npz"
    if not pictures.exists():
        pytest.skip(f"real data is absent: {pictures} does not exist")
    text = PAGE.read_text(encoding="utf-8").split("## From images to a student")[1]
    block = re.search(r"```bash\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pictures, "mnist.npz")
    said = ""
    for line in block.group(1).splitlines():
        status, out, err = run(line.removeprefix("tacit "))
        assert status == 0, err
        said += out
    assert "epsilon = 1 at delta = 1e-05" in said
    assert float(re.search(r"^accuracy (\S+)", said, re.MULTILINE).group(1)) >= 0.95
