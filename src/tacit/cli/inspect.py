"""`tacit inspect`: what a release says, checked."""

from pathlib import Path


def inspect(release: Path, /, *, registry: Path | None = None, force: bool = False) -> None:
    """Check a release (hashes, arrays, every stated number) and print its card.

    Parameters
    ----------
    release
        Folder of a release.
    registry
        Also write an entry for a registry of deployments, as YAML.
    force
        Overwrite the YAML file.
    """
    from tacit.compute.atomic import atomic_file
    from tacit.releases.registry import registry_yaml
    from tacit.releases.release import Release

    loaded = Release.load(release).verify()
    if registry is not None:
        entry = registry_yaml(loaded.document)
        with atomic_file(registry, force=force) as temporary:
            temporary.write_text(entry, encoding="utf-8")
    print(f"{release}: verified; hashes, arrays and every stated number about privacy agree with the recorded events\n")
    print(loaded.card())
