"""List the versions of the documentation that a site holds, for the switch between them.

`python tools/versions.py SITE --url URL` writes SITE/versions.json, which every page reads, and
SITE/index.html, which leads to the newest release, or to the development version before the first.
The site at URL holds one folder for each: dev, v0.1.0 and so on.
"""

import argparse
import json
import re
from pathlib import Path

INDEX = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>tacit</title>
<meta http-equiv="refresh" content="0; url={0}/">
<a href="{0}/">tacit {0}</a>
</html>
"""


def versions(site: Path, url: str) -> list[dict[str, object]]:
    """An entry for each version: dev, then releases, the newest first, which is preferred."""
    numbers = {}
    for folder in site.iterdir():
        if folder.is_dir() and (found := re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", folder.name)):
            numbers[folder.name] = tuple(int(number) for number in found.groups())
    releases = sorted(numbers, key=numbers.__getitem__, reverse=True)
    entries: list[dict[str, object]] = [
        {"version": name, "url": f"{url.rstrip('/')}/{name}/"} for name in releases
    ]
    if entries:
        entries[0] |= {"name": f"{releases[0]} (stable)", "preferred": True}
    dev = {"version": "dev", "url": f"{url.rstrip('/')}/dev/"}
    return [dev, *entries] if (site / "dev").is_dir() else entries


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--url", required=True)
    arguments = parser.parse_args()
    if not arguments.site.is_dir():
        parser.error(f"{arguments.site} is not a folder; give the folder of the site")
    entries = versions(arguments.site, arguments.url)
    start = next((entry["version"] for entry in entries if "preferred" in entry), "dev")
    (arguments.site / "versions.json").write_text(
        json.dumps(entries, indent=2) + "\n", encoding="utf-8"
    )
    (arguments.site / "index.html").write_text(INDEX.format(start), encoding="utf-8")
