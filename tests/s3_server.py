"""A server that speaks as much of S3 as reading needs: lists of keys (version 2), sizes, and ranges of
bytes. Requests without the access key are refused.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS_KEY = "an-access-key"


@contextmanager
def s3_server(objects: dict[str, bytes]) -> Iterator[str]:
    """Serve objects by `bucket/key`, and give the options of URLs that lead there."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # an answer in one packet
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            url = urlsplit(self.path)
            path = unquote(url.path).strip("/")
            options = parse_qs(url.query)
            if ACCESS_KEY not in self.headers.get("Authorization", ""):
                self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            elif "list-type" in options:
                self.answer(200, _listing(objects, path, options))
            elif path in objects:
                self.answer_range(objects[path])
            else:
                self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

        def answer_range(self, content):
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if asked is None:
                self.answer(200, content)
                return
            start = int(asked[1])
            stop = min(int(asked[2] or len(content)), len(content) - 1) + 1
            place = f"bytes {start}-{stop - 1}/{len(content)}"
            self.answer(206, content[start:stop], **{"Content-Range": place})

        def answer(self, status, body, **headers):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.send_header("ETag", '"0"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _listing(objects, bucket, options):
    """Return the keys that begin with a prefix, and the prefixes up to a delimiter, as XML."""
    prefix = options.get("prefix", [""])[0]
    delimiter = options.get("delimiter", [""])[0]
    entries = []
    folders = set()
    for path, content in sorted(objects.items()):
        key = path.removeprefix(f"{bucket}/")
        if key == path or not key.startswith(prefix):
            continue
        folder, mark, _ = key[len(prefix) :].partition(delimiter or "\0")
        if mark:
            folders.add(prefix + folder + mark)
            continue
        entries.append(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
            "<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
        )
    for folder in sorted(folders):
        entries.append(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>")
    return (
        f"<ListBucketResult><Name>{bucket}</Name><KeyCount>{len(entries)}</KeyCount>"
        f"<IsTruncated>false</IsTruncated>{''.join(entries)}</ListBucketResult>"
    ).encode()
