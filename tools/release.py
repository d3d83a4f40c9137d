"""Check that a tag may be released, and write the notes of the release.

`python tools/release.py TAG [--notes FILE]` exits with 1 and one line for each file that does not
state the version of the tag. The version stands in src/tacit/version.py; CITATION.cff and
CHANGELOG.md repeat it, with the day.
"""

import argparse
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version(root: Path) -> str:
    """Return the version of the package."""
    module = runpy.run_path(str(root / "src" / "tacit" / "version.py"))
    return str(module["__version__"])


def section(changelog: str, number: str) -> tuple[str, str] | None:
    """Return day and text of a version in the changelog; None if it has no section."""
    # from its heading to the next one, or to the end
    match = re.search(
        rf"^## \[{re.escape(number)}\] - (\d{{4}}-\d\d-\d\d)\n(.*?)(?=^## \[|\Z)",
        changelog,
        re.M | re.S,
    )
    if match is None:
        return None
    day, text = match.groups()
    return day, text.strip() + "\n"


def versions_without_files(changelog: str, number: str, folder: Path) -> list[str]:
    """Return the versions that lack the files that they wrote, the oldest first.

    Formats are promised to be read from version 1.0 on.
    """
    versions = {number, *re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.M)}
    lacking = []
    for name in sorted(versions, key=lambda name: [int(part) for part in name.split(".")]):
        is_promised = int(name.partition(".")[0]) >= 1
        if is_promised and not (folder / name / "release").is_dir():
            lacking.append(name)
    return lacking


def problems(root: Path, tag: str) -> list[str]:
    """Return what hinders the release of a tag, one line each."""
    number = version(root)
    if tag != f"v{number}":
        return [f"tag {tag!r} does not name the version of src/tacit/version.py: tag v{number}"]

    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    day_and_text = section(changelog, number)
    if day_and_text is None:
        return [
            f"CHANGELOG.md has no section '## [{number}] - YYYY-MM-DD': put it below '##"
            " [Unreleased]'"
        ]
    if versions_without_files(changelog, number, root / "tests" / "formats" / "written"):
        return [
            f"tests/formats/written lacks {number} or an earlier version: run python"
            " tools/written.py"
        ]

    day, _ = day_and_text
    citation_lines = (root / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    return [
        f"CITATION.cff lacks the line {line}"
        for line in (f"version: {number}", f'date-released: "{day}"')
        if line not in citation_lines
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tag")
    parser.add_argument("--notes", type=Path)
    arguments = parser.parse_args()
    problems_of_tag = problems(ROOT, arguments.tag)
    if problems_of_tag:
        sys.exit("\n".join(problems_of_tag))
    if arguments.notes:
        _, notes = section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version(ROOT))
        arguments.notes.write_text(notes, encoding="utf-8")
