"""Libraries that belong to an extra, such as tacit[encoders]."""

from importlib.util import find_spec

from tacit.errors import InputError


def check_installed(library: str, extra: str) -> None:
    """Check that a library of an extra is there.

    Raises
    ------
    InputError
        If it is not.
    """
    if find_spec(library) is None:
        raise InputError(f"{library} is not installed, and this needs it; run pip install 'tacit[{extra}]'")
