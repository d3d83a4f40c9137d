"""Join PDF files of vl-convert into one.

It relies on how svg2pdf writes them: one table of objects, and references in dictionaries, never in compressed streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

CATALOG, PAGES, INFO = 1, 2, 3  # numbers of objects


def joined(files: Sequence[bytes], title: str) -> bytes:
    """One PDF with the pages of all files in order, and a title."""
    objects: dict[int, bytes] = {}
    trees = []  # of pages, one for each file
    for file in files:
        shift = max(objects, default=INFO)
        for number, body in _objects(file):
            dictionary, stream, data = body.partition(b"\nstream")
            dictionary = re.sub(rb"\d+ 0 R", partial(_shifted, shift), dictionary)
            if b"/Type /Pages" in dictionary:
                trees.append(number + shift)
                dictionary = dictionary.replace(b"/Type /Pages", b"/Type /Pages /Parent %d 0 R" % PAGES)
            objects[number + shift] = dictionary + stream + data
    kids = b" ".join(b"%d 0 R" % number for number in trees)
    objects[CATALOG] = b"<< /Type /Catalog /Pages %d 0 R >>" % PAGES
    objects[PAGES] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(trees), kids)
    objects[INFO] = b"<< /Title <%s> >>" % ("\ufeff" + title).encode("utf-16-be").hex().encode()
    return _written(objects)


def _shifted(by: int, reference: re.Match[bytes]) -> bytes:
    return b"%d 0 R" % (int(reference[0].split()[0]) + by)


def _objects(file: bytes) -> Iterator[tuple[int, bytes]]:
    """The numbers and the contents of a file's objects."""
    table = int(file[file.rindex(b"startxref") :].split()[1])
    starts = sorted(int(start) for start in re.findall(rb"(\d{10}) 00000 n", file[table:]))
    for start, end in pairwise([*starts, table]):
        number, _, body = file[start:end].partition(b" 0 obj")
        yield int(number), body[: body.rindex(b"endobj")].strip()


def _written(objects: dict[int, bytes]) -> bytes:
    parts, table, place = [b"%PDF-1.7\n"], [b"0000000000 65535 f \n"], len(b"%PDF-1.7\n")
    for number in range(1, len(objects) + 1):
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, objects[number]))
        table.append(b"%010d 00000 n \n" % place)
        place += len(parts[-1])
    trailer = b"<< /Size %d /Root %d 0 R /Info %d 0 R >>" % (len(table), CATALOG, INFO)
    end = b"xref\n0 %d\n%strailer\n%s\nstartxref\n%d\n%%%%EOF\n" % (len(table), b"".join(table), trailer, place)
    return b"".join([*parts, end])
