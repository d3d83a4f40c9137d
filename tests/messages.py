"""Facts in messages and pages: what a sentence must state, in whatever words and order."""

import re


def stating(*facts):
    """Return a pattern, for `match` or `re.search`, of a line that states every fact as a whole
    word.
    """
    return "(?m)^" + "".join(f"(?=.*{_whole(fact)})" for fact in facts)


def lacking(text, *facts):
    """Return the facts that are missing from the line of a text which states most of them."""
    lines = text.splitlines() or [""]
    return min(
        ([fact for fact in facts if not re.search(_whole(fact), line)] for line in lines), key=len
    )


def _whole(fact):
    """Return the pattern of a fact that is not part of a longer word or number."""
    text = str(fact)
    before = r"(?<!\w)(?<!\d\.)" if re.match(r"\w", text) else ""
    after = r"(?!\w|\.\d)" if re.search(r"\w$", text) else ""
    return before + re.escape(text) + after
