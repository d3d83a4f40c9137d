"""The table of proofs, tests, replays and reviews has every mechanism, and names what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
MODULES = sorted(path.stem for path in (ROOT / "src" / "tacit" / "mechanisms").glob("[!_]*.py"))
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| `src/")
]
HEADINGS = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "mechanisms.md").read_text("utf-8"), re.M)
SECTIONS = {heading.lower().replace(" ", "-") for heading in HEADINGS}


def test_every_mechanism_has_a_row_and_no_other_file():
    listed = [re.fullmatch(r"`src/tacit/mechanisms/(\w+)\.py`", row[0].strip()) for row in ROWS]
    assert [match and match[1] for match in listed] == MODULES, (
        "give each file of src/tacit/mechanisms its row in docs/evidence.md, in alphabetical order"
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_what_exists(row):
    mechanism, proof, test, replay, review = row
    stem = Path(mechanism.strip("`")).stem
    assert re.match(r"docstring|none", proof), "say where the proof stands, or none and why"
    for section in re.findall(r"\(mechanisms\.md#([^)]*)\)", proof):
        assert section in SECTIONS, f"docs/mechanisms.md has no section {section}"
    assert test.startswith(f"`tests/mechanisms/test_{stem}.py`: ")
    assert replay.startswith(("`tests/", "none: ")), "name a test, or say none and why"
    assert review == "none" or "](" in review, "say none, or link to the review"
    for path, function in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", f"{test} {replay}"):
        file = ROOT / path
        assert file.exists(), f"{path} does not exist"
        assert f"def {function}" in file.read_text(encoding="utf-8"), f"{path} has no {function}"


def test_a_docstring_that_the_table_calls_a_proof_names_its_source():
    for mechanism, proof, *_ in ROWS:
        text = (ROOT / mechanism.strip("`")).read_text(encoding="utf-8")
        docstring = text.split('"""')[1]
        if proof.startswith("docstring") and "NoiseSource" in text and "Unit:" in docstring:
            assert "Theorem" in docstring, mechanism
            assert "Source:" in docstring, mechanism
