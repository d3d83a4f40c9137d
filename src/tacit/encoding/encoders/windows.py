"""Windows of a text that is longer than an encoder reads, by the tokenizer of the encoder."""

from typing import Any


def windows(tokenizer: Any, longest: int, text: str) -> list[str]:
    """Cut a text into parts of at most `longest` tokens, special ones included, between words.

    Only a word that is longer than a window is cut within. Tokenizers that do not tell where tokens
    are in a text give the text as its only part.
    """
    if not getattr(tokenizer, "is_fast", False):
        return [text]
    # special tokens, such as [CLS], are added to each window
    size = longest - tokenizer.num_special_tokens_to_add()
    encoding = tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
    )
    # first and last character of each token
    offsets = encoding["offset_mapping"]
    if len(offsets) <= size or size < 1:
        return [text]

    words = encoding.word_ids(0)
    parts = []
    first = 0
    while first < len(offsets):
        end = _end_of_window(words, first, size)
        parts.append(text[offsets[first][0] : offsets[end - 1][1]])
        first = end
    return [part for part in parts if part.strip()]


def _end_of_window(words: list[int | None], first: int, size: int) -> int:
    """Return the position after the last token of the window that begins at token `first`."""
    longest_end = first + size
    if longest_end >= len(words):
        return len(words)
    end = longest_end
    while end > first and words[end] == words[end - 1]:
        end -= 1
    # one word fills the window
    return end if end > first else longest_end
