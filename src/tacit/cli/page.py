"""`tacit page`: a release as a page that anybody can open, read and classify with."""

from pathlib import Path

from tacit.cli.common import check_outside, say
from tacit.cli.options import Force, Out


def page(
    release: Path,
    /,
    *,
    out: Out,
    onnxruntime: Path | None = None,
    key: Path | None = None,
    force: Force = False,
) -> None:
    """Write a page that holds the card, what an attacker may learn, and the classifier; it needs no
    network.

    Parameters
    ----------
    release
        Folder of a release.
    out
        A page.html. It holds everything and asks for nothing else.
    onnxruntime
        For a release that decides by a network: the folder dist of the npm package onnxruntime-web.
        The page then holds it too (about 5 MB) and runs the network.
    key
        Also check that the owner of this public key, a PEM file, signed all files, which the page
        then says; needs the extra hub.
    """
    from tacit.compute.atomic import atomic_file, check_writable
    from tacit.errors import InputError
    from tacit.releases.release import Release
    from tacit.releases.signing import signature_words
    from tacit.report.release_page import release_page

    if out.suffix != ".html":
        raise InputError(f"--out {out} must end in .html; give a file name such as {out.stem}.html")
    check_outside(out, release)
    check_writable(out, force=force)
    signature = signature_words(release, key)
    html = release_page(Release.load(release).verify(), onnxruntime, signature)
    with atomic_file(out, force=force) as temporary:
        temporary.write_text(html, encoding="utf-8")
    say(f"{out}: {len(html.encode('utf-8'))} bytes; it needs no network")
