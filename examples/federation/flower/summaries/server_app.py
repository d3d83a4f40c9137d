"""The server: ask every owner once, and combine what arrives."""

import time
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

import server

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    folder = Path(str(context.run_config["folder"]))
    timeout = int(context.run_config["timeout"])
    nodes = connected(grid, int(context.run_config["owners"]), timeout)
    request = RecordDict({"request": ConfigRecord({"recipe": server.request(folder)})})
    messages = [
        Message(request, dst_node_id=node, message_type=MessageType.QUERY) for node in nodes
    ]

    replies = {}
    for message in grid.send_and_receive(messages, timeout=timeout):
        # an owner whose process died sends no content
        if message.has_content():
            sender = f"node {message.metadata.src_node_id}"
            replies[sender] = dict(message.content.get("reply", {}))
    print(server.combine(replies, folder, asked=len(nodes)))


def connected(grid: Grid, owners: int, timeout: int) -> list[int]:
    """Wait until that many owners are connected, and return those that are."""
    deadline = time.monotonic() + timeout
    while len(nodes := list(grid.get_node_ids())) < owners and time.monotonic() < deadline:
        time.sleep(0.5)
    return nodes
