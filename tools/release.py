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
    """The version of the package."""
    stated: str = runpy.run_path(str(root / "src" / "tacit" / "version.py"))["__version__"]
    return stated


def section(changelog: str, number: str) -> tuple[str, str] | None:
    """Day and text of a version in the changelog."""
    found = re.search(
        rf"^## \[{re.escape(number)}\] - (\d{{4}}-\d\d-\d\d)\n(.*?)(?=^## \[|\Z)",
        changelog,
        re.M | re.S,
    )
    return (found[1], found[2].strip() + "\n") if found else None


def versions_without_files(changelog: str, number: str, written: Path) -> list[str]:
    """Versions from 1.0 on, the oldest first, that lack the files that they wrote."""
    versions = {number, *re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.M)}
    promised = [version for version in versions if int(version.partition(".")[0]) >= 1]
    promised.sort(key=lambda version: [int(part) for part in version.split(".")])
    return [version for version in promised if not (written / version / "release").is_dir()]


def problems(root: Path, tag: str) -> list[str]:
    """What hinders the release of a tag, one line each."""
    number = version(root)
    if tag != f"v{number}":
        return [f"tag {tag!r} does not name the version of src/tacit/version.py: tag v{number}"]
    text = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), number)
    if text is None:
        return [
            f"CHANGELOG.md has no section '## [{number}] - YYYY-MM-DD': put it below '##"
            " [Unreleased]'"
        ]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if versions_without_files(changelog, number, root / "tests" / "formats" / "written"):
        return [
            f"tests/formats/written lacks {number} or an earlier version: run python"
            " tools/written.py"
        ]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    needed = [f"version: {number}", f'date-released: "{text[0]}"']
    return [
        f"CITATION.cff lacks the line {line}"
        for line in needed
        if line not in citation.splitlines()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tag")
    parser.add_argument("--notes", type=Path)
    arguments = parser.parse_args()
    if hindrances := problems(ROOT, arguments.tag):
        sys.exit("\n".join(hindrances))
    if arguments.notes:
        _, notes = section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version(ROOT))
        arguments.notes.write_text(notes, encoding="utf-8")
