"""`tacit --install-completion`: commands, methods, options and listed values completed by the
shell.
"""

from pathlib import Path
from typing import Literal

from cyclopts import App

from tacit.cli.common import say
from tacit.errors import InputError


def install_completion(
    *, shell: Literal["bash", "zsh", "fish"] | None = None, output: Path | None = None
) -> None:
    """Let the shell complete what is typed; a line is added to its start-up file where that is
    needed.

    Parameters
    ----------
    shell
        By default the shell in use.
    output
        Write the script to this file, and change no start-up file.
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    from tacit.compute.atomic import check_writable

    try:
        known = shell or detect_shell()
    except ShellDetectionError as error:
        raise InputError(
            "the shell in use cannot be determined; name it with --shell bash, zsh or fish"
        ) from error
    if output is not None:
        check_writable(output, force=True)
    path = completed_app().install_completion(
        shell=known, output=output, add_to_startup=output is None
    )
    say(
        f"{path}: completion for {known};"
        f" {'open a new shell' if output is None else f'source {path}'} to use it"
    )


def completed_app() -> App:
    """The commands as shells complete them: each method of fit and promise is a command with its
    own options.
    """
    from tacit.cli.app import app
    from tacit.cli.verbs import OF_A_METHOD, VERBS

    completed = App(name="tacit", version=app.version, default_parameter=app.default_parameter)
    for verb in VERBS:
        completed.command(_by_method(verb) if verb in OF_A_METHOD else app[verb])
    completed.command(app["--install-completion"])
    return completed


def _by_method(verb: str) -> App:
    from tacit.cli.method_help import method_app
    from tacit.cli.verbs import VERBS
    from tacit.learners.methods import METHODS

    methods = App(name=verb, help=VERBS[verb])
    for method in METHODS:
        methods.command(method_app(verb, method, name=method))
    return methods
