"""`tacit publish`: a release as a folder for a model hub, signed if a key is given."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.cli.common import check_outside, say
from tacit.cli.options import Force
from tacit.errors import InputError


def publish(
    release: Path,
    /,
    *,
    to: Path | None = None,
    repo: str | None = None,
    license: str | None = None,
    sign: Path | None = None,
    force: Force = False,
) -> None:
    """Check a release and write it with a README.md that model hubs read.

    Parameters
    ----------
    release
        Folder of a release, or of labels of public rows (tacit label-public).
    to
        Folder to write.
    repo
        Upload it to this repository of the Hugging Face Hub, such as me/digits, with your own
        login; labels go to a repository of data sets.
    license
        Identifier of the license, such as apache-2.0; by default README.md states none.
    sign
        PEM file of the private key to sign all files with; needs the extra hub.
    """
    from tacit.compute.extras import check_installed
    from tacit.releases.public_labels import PublicLabels
    from tacit.releases.publishing import publish, upload
    from tacit.releases.reading import LABELS_DOCUMENT
    from tacit.releases.release import Release

    if to is None and repo is None:
        raise InputError(
            "--to is missing; give the folder to write with --to FOLDER, or a repository with"
            " --repo NAME"
        )
    if repo is not None:
        check_installed("huggingface_hub")
    if to is not None:
        check_outside(to, release)
    is_labels = (release / LABELS_DOCUMENT).exists()
    loaded = PublicLabels.load(release) if is_labels else Release.load(release)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary, (repo or "").rpartition("/")[2] or "release") if to is None else to
        publish(loaded, folder, license=license, key=sign, force=force)
        if repo is not None:
            upload(folder, repo)
    places = [str(to)] * (to is not None) + [f"repository {repo}"] * (repo is not None)
    content = "labels, and README.md for hubs of data sets"
    if not is_labels:
        content = "the release, and README.md for model hubs"
    say(f"{' and '.join(places)}: {content}")
    if sign is not None:
        from tacit.releases.signing import fingerprint

        say(f"Signed by the key {fingerprint(sign, private=True)}")
    if license is None:
        say(
            "README.md states no license, so others may not know what they may do; add --license"
            " apache-2.0 or another"
        )
