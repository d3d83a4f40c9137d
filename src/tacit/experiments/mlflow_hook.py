"""Log results to an MLflow server or folder; needs the extra `mlflow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tacit.compute.libraries.mlflow import load_mlflow
from tacit.errors import InputError
from tacit.experiments.results import Result
from tacit.experiments.work import IDENTITY

METRICS = (
    "accuracy",
    "balanced_accuracy",
    "minority_accuracy",
    "epsilon",
    "delta",
    "rho",
    "fit_seconds",
    "predict_seconds",
)
PARAMETERS = (*IDENTITY, "budget", "status", "error")


@contextmanager
def logging_to(address: str, experiment: str) -> Iterator[Callable[[Result], None]]:
    """Yield a function that logs a result as a run of the experiment, which is created if needed.

    Raises InputError if MLflow is not installed or refuses the address.
    """
    mlflow = load_mlflow()
    try:
        client = mlflow.MlflowClient(tracking_uri=address)
        existing = client.get_experiment_by_name(experiment)
        if existing is None:
            experiment_id = client.create_experiment(experiment)
        else:
            experiment_id = existing.experiment_id
    except Exception as error:
        fault = " ".join(str(error).split())[:200]
        raise InputError(f"--mlflow {address} cannot be used ({fault}); correct it") from error

    def log(result: Result) -> None:
        values: dict[str, Any] = asdict(result)
        run_id = client.create_run(experiment_id, run_name=result.key).info.run_id
        for name in PARAMETERS:
            client.log_param(run_id, name, values[name])
        for name in METRICS:
            if values[name] is not None:
                client.log_metric(run_id, name, values[name])
        status = "FINISHED" if result.status == "done" else "FAILED"
        client.set_terminated(run_id, status)

    yield log
