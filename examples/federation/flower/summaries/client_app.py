"""The client: hand the request to the owner's code, and send back what it returns."""

from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

import owner

app = ClientApp()


def folder_of(context: Context) -> Path:
    """Return the folder of the owner.

    A SuperNode names it: `flower-supernode --node-config 'owner="/srv/hospital-1"'`. In the
    simulation, which has no SuperNodes, the owners' folders are numbered in the server's folder.
    """
    if "owner" in context.node_config:
        return Path(str(context.node_config["owner"]))
    number = int(context.node_config["partition-id"]) + 1
    return Path(str(context.run_config["folder"])) / f"hospital-{number}"


@app.query()
def summarise(message: Message, context: Context) -> Message:
    """Reply with the files of the owner's summary, or with a refusal."""
    request = str(message.content["request"]["recipe"])
    files = owner.reply(folder_of(context), request)
    return Message(RecordDict({"reply": ConfigRecord(files)}), reply_to=message)
