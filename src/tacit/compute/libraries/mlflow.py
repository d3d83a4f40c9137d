"""MLflow, of the extra `mlflow`."""

from typing import Any

from tacit.compute.extras import check_installed


def load_mlflow() -> Any:
    """Return mlflow, imported on the first call; InputError that names the extra if it is not
    installed.
    """
    check_installed("mlflow")
    import mlflow

    return mlflow


def load_pyfunc() -> Any:
    """Return mlflow.pyfunc, which also needs pandas; InputError that names the extra if one is not
    installed.
    """
    check_installed("mlflow")
    check_installed("pandas")
    import mlflow.pyfunc

    return mlflow.pyfunc
