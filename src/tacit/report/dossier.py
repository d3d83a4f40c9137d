"""The dossier of a release: one page for a committee that decides whether it may leave, and the
same facts as JSON.

The page is made of a `Dossier` alone, whose values the JSON twin holds, so neither says what the
other does not. It has no script, and its policy admits nothing but its own style.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, date, datetime
from html import escape
from pathlib import Path

from tacit.compute.atomic import atomic_files, check_writable
from tacit.errors import InputError, ReleaseError
from tacit.releases.evidence import files_of, signer_of
from tacit.releases.gate import Verdict
from tacit.releases.reading import AGAIN, DOCUMENT
from tacit.releases.release import Release
from tacit.releases.signing import signature_words
from tacit.report import attack
from tacit.report.dossier_facts import CONCLUSIONS, dossier
from tacit.report.dossier_parts import Checks, Dossier, Fact, Section, Table
from tacit.report.page import page, style_policy, table

__all__ = ["Checks", "Dossier", "dossier", "dossier_page", "examined", "save", "twin_of"]

_PICTURE = """<figure>{picture}<figcaption>How often an attack that knows everything else can
detect one member (upwards), for each rate of false alarms (to the right). The line is the most that
any attack reaches, dots are the rates of the table, and the dashed line is a blind
guess.</figcaption></figure>"""
_ABOUT = """<p class="soft">Each fact names where it comes from: an item of the card of the release,
or a check that tacit {tacit} made on {date}. What nobody stated reads “not stated”. This page is a
reading by a program and no legal advice. A file of the same name that ends in .json holds the same
facts.</p>"""


def twin_of(out: Path) -> Path:
    """Return the JSON file beside a page.

    Raises
    ------
    InputError
        If the page does not end in .html.
    """
    if out.suffix != ".html":
        raise InputError(
            f"--dossier {out} must end in .html; give a file name such as {out.stem}.html"
        )
    return out.with_suffix(".json")


def check_outputs(out: Path, *, force: bool) -> None:
    """Refuse a page that cannot be written, or whose twin cannot, before any work."""
    for path in (out, twin_of(out)):
        check_writable(path, force=force)


def examined(
    folder: Path, key: Path | None, day: date, verdict: Verdict | None = None
) -> tuple[Release, Checks]:
    """Read the files of a release once, and check them and their signature.

    Parameters
    ----------
    folder : Path
    key : Path or None
        PEM file of the public key of whoever must have signed all files.
    day : date
        Of the check.
    verdict : Verdict, optional
        Of a policy on this folder.

    Raises
    ------
    ReleaseError
        If a statement of the release does not agree, or the verdict is about other files.
    """
    files = files_of(folder)
    release = Release.of_files(files, folder).verify()
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    if verdict is not None and verdict.sha256 != hashes[DOCUMENT]:
        raise ReleaseError(f"{folder} was exchanged while it was read; {AGAIN}")

    signer, fault = signer_of(folder, files, key)
    if signer:
        signature = f"All files are signed by the key {signer}; checked."
    elif key is not None:
        signature = f"The signature does not hold: {fault}."
    else:
        signature = signature_words(folder, None)
    return release, Checks(day, hashes, signature, verdict)


def today() -> date:
    """Return the day, in UTC."""
    return datetime.now(UTC).date()


def save(out: Path, facts: Dossier, *, force: bool = False) -> None:
    """Write the page and its JSON twin, both or neither.

    Raises
    ------
    InputError
        If a file exists or cannot be written.
    """
    twin = json.dumps(facts.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_files(out, twin_of(out), force=force) as (html_part, json_part):
        html_part.write_text(dossier_page(facts), encoding="utf-8")
        json_part.write_text(f"{twin}\n", encoding="utf-8")


def dossier_page(facts: Dossier) -> str:
    """Return the page as HTML."""
    head = ""
    if facts.stamp:
        head += f'<p class="stamp">{escape(facts.stamp)}</p>'
    head += _facts(facts.glance) + _ABOUT.format(tacit=escape(facts.tacit), date=facts.date)

    sections = [("", head)]
    for number, section in enumerate(facts.sections, 1):
        picture = ""
        if section.title == CONCLUSIONS:
            picture = _PICTURE.format(picture=attack.picture(facts.curve, facts.marked))
        sections.append((f"{number}. {section.title}", _section(section, picture)))
    return page(f"Dossier: {facts.title}", sections, policy=style_policy())


def _section(section: Section, picture: str) -> str:
    """Return the answer, then the picture if there is one, the facts and the tables."""
    answer = f'<p class="answer">{escape(section.answer)}</p>'
    tables = [_table(part) for part in section.tables]
    if picture:
        # the picture shows the rates of the first table, and stands beside it
        answer += f'<div class="columns"><div>{picture}</div><div>{tables.pop(0)}</div></div>'
    return answer + _facts(section.facts) + "".join(tables)


def _facts(facts: tuple[Fact, ...]) -> str:
    """Return facts by their names, each with its source."""
    entries = ""
    for fact in facts:
        source = f'<span class="soft">({escape(fact.source)})</span>'
        entries += f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.text)} {source}</dd></div>"
    return f'<dl class="stated">{entries}</dl>'


def _table(part: Table) -> str:
    """Return a table below its caption, which may be wider than the table."""
    html = table(part.header, part.rows, label=part.caption)
    return f"<h3>{escape(part.caption)}</h3>{html}"
