"""Lines of ledgers, written as earlier versions wrote them."""

from tacit.privacy.chain import Chain


def record(ledger, guarantee, what):
    """Add a charge to a ledger without an allowance, as ledgers were kept before they had to
    exist.
    """
    chain = Chain()
    if ledger.path.exists():
        for line in ledger.path.read_bytes().splitlines(keepends=True):
            chain.read(line)
    entry = {"time": "2026-01-01T00:00:00+00:00", "identity": ledger.identity, "kind": "charge"}
    with ledger.path.open("ab") as file:
        file.write(chain.next(entry | {"what": what, "guarantee": guarantee.to_json()}))
