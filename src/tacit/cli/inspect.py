"""`tacit inspect`: what a release says, checked."""

from pathlib import Path

from tacit.cli.common import check_outside, say
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.options import Json
from tacit.errors import InputError


def inspect(
    release: Path,
    /,
    *,
    key: Path | None = None,
    registry: Path | None = None,
    json: Json = False,
    force: bool = False,
) -> None:
    """Check a release (hashes, arrays, every stated number) and print its card.

    Parameters
    ----------
    release
        Folder of a release, or of labels of public rows (tacit label-public).
    key
        Also check that the owner of this public key, a PEM file, signed all files; needs the extra
        hub.
    registry
        Also write an entry for a registry of deployments, as YAML.
    force
        Overwrite the YAML file.
    """
    from tacit.compute.atomic import atomic_file
    from tacit.releases.reading import LABELS_DOCUMENT
    from tacit.releases.registry import registry_yaml
    from tacit.releases.release import Release

    signed = _signed(release, key)
    if (release / LABELS_DOCUMENT).exists():
        if registry is not None:
            raise InputError(
                f"--registry does not apply to {release}, which holds labels; inspect the release"
                " that made them"
            )
        _inspect_labels(release, signed, json=json)
        return
    loaded = Release.load(release).verify()
    if registry is not None:
        check_outside(registry, release)
        entry = registry_yaml(loaded.document)
        with atomic_file(registry, force=force) as temporary:
            temporary.write_text(entry, encoding="utf-8")
    if json:
        print_json(
            {
                "verified": True,
                "signature": signed,
                **guarantee_facts(loaded.guarantee),
                "document": loaded.document.model_dump(mode="json"),
            }
        )
        return
    say(
        f"{release}: verified; hashes, arrays and every stated number about privacy agree with the"
        " recorded events"
    )
    say(f"{signed}\n")
    say(loaded.card())


def _inspect_labels(folder: Path, signed: str, *, json: bool) -> None:
    """Check labels of public rows and print their card, or their documents as JSON."""
    from tacit.releases.public_labels import PublicLabels

    labels = PublicLabels.load(folder).verify()
    if json:
        print_json(
            {
                "verified": True,
                "signature": signed,
                **guarantee_facts(labels.guarantee),
                "document": labels.document.model_dump(mode="json"),
                "release": labels.release.model_dump(mode="json"),
            }
        )
        return
    say(
        f"{folder}: verified; hashes, counts of labels and every stated number about privacy agree"
        " with the recorded events"
    )
    say(f"{signed}\n")
    say(labels.card())


def _signed(release: Path, key: Path | None) -> str:
    """One line on who signed a release; with a key the signature is checked."""
    from tacit.releases.reading import SIGNATURE
    from tacit.releases.signing import check_signature

    if key is not None:
        return f"{release}: all files are signed by the key {check_signature(release, key)}"
    if (release / SIGNATURE).exists():
        return (
            f"{release}: has a signature that was not checked; give the signer's public key with"
            " --key"
        )
    return f"{release}: not signed, so nothing shows who made it"
