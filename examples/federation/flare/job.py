"""The job of one round: run it in FLARE's simulator, or export it for the admin console.

python flare/job.py FOLDER [--timeout SECONDS] [--job FOLDER]
"""

import argparse
import os
import shutil
from pathlib import Path

from nvflare.job_config.api import FedJob
from nvflare.recipe.sim_env import SimEnv
from nvflare.recipe.spec import Recipe

from summary_controller import SummaryController
from summary_executor import SummaryExecutor

HERE = Path(__file__).resolve().parent


def one_round(timeout: int) -> FedJob:
    """Return the job. It names classes and brings no code: each site installs its own."""
    job = FedJob(name="summaries", min_clients=1)
    job.set_app_packages(["summary_controller", "summary_executor"])
    job.to_server(SummaryController(timeout))
    job.to_clients(SummaryExecutor(), tasks=["summarise"])
    return job


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path, help="the server's folder, which deal.py made")
    arguments.add_argument("--timeout", type=int, default=600, help="seconds to wait for replies")
    arguments.add_argument("--job", type=Path, help="write the job here, and do not run it")
    options = arguments.parse_args()
    job = one_round(options.timeout)
    if options.job:
        job.export_job(str(options.job))
        return

    folder = options.folder.resolve()
    os.environ["FEDERATION"] = str(folder)
    workspace = folder / "workspace"
    shutil.rmtree(workspace, ignore_errors=True)

    # the policy of a site: which classes a job may name
    local = workspace / job.name / "local"
    local.mkdir(parents=True)
    shutil.copy(HERE / "resources.json", local)

    owners = sorted(path.name for path in folder.glob("hospital-*"))
    Recipe(job).execute(SimEnv(clients=owners, workspace_root=str(workspace)))


if __name__ == "__main__":
    main()
