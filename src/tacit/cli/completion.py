"""`tacit --install-completion`: commands and options completed by the shell."""

from pathlib import Path
from typing import Literal

from tacit.cli.common import say
from tacit.errors import InputError


def install_completion(*, shell: Literal["bash", "zsh", "fish"] | None = None, output: Path | None = None) -> None:
    """Let the shell complete commands and options; a line is added to its start-up file where that is needed.

    Parameters
    ----------
    shell
        By default the shell in use.
    output
        Write the script to this file, and change no start-up file.
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    from tacit.cli.app import app

    try:
        known = shell or detect_shell()
    except ShellDetectionError as error:
        raise InputError("the shell in use cannot be determined; name it with --shell bash, zsh or fish") from error
    path = app.install_completion(shell=known, output=output, add_to_startup=output is None)
    say(f"{path}: completion for {known}; open a new shell to use it")
