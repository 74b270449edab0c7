"""Access logs of web servers."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, DataError

LINES = r"""127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif?x=1&y=2 HTTP/1.0" 200 2326
::1 - - [10/Oct/2000:20:55:37 +0000] "POST /login HTTP/1.1" 302 - "http://a/\"b\"" "Mozilla/5.0 (X11; Linux)"
10.0.0.9 - - [10/Oct/2000:20:55:38 +0000] "\x16\x03\x01" 400 157 "-" "-"
a.example:443 10.0.0.9 - - [10/Oct/2000:20:55:39 +0000] "GET / HTTP/2.0" 200 5 "-" "curl/8" 0.004
"""


def test_the_common_and_the_combined_form(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text(LINES)
    table = cepheid.read(path)
    assert table.schema.field("ts").type == pa.timestamp("us", "UTC")
    assert table.schema.field("status").type == table.schema.field("bytes").type == pa.int64()
    first, second, third, fourth = table.to_pylist()
    assert first["ts"] == datetime(2000, 10, 10, 20, 55, 36, tzinfo=UTC)
    assert (first["type"], first["path"], first["query"], first["user"]) == (
        "GET",
        "/apache_pb.gif",
        "x=1&y=2",
        "frank",
    )
    assert (first["referrer"], first["agent"], first["bytes"], second["bytes"]) == (None, None, 2326, None)
    assert (second["referrer"], second["agent"]) == ('http://a/"b"', "Mozilla/5.0 (X11; Linux)")
    assert (third["type"], third["path"], third["protocol"]) == ("MALFORMED", r"\x16\x03\x01", None)
    assert (fourth["server"], fourth["more"], fourth["protocol"]) == ("a.example:443", "0.004", "HTTP/2.0")


def test_lines_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text(LINES + '1.1.1.1 - - [31/Feb/2000:20:55:37 +0000] "GET / HTTP/1.1" 200 1\nnothing\n')
    with pytest.raises(DataError, match=r"line 5 has no such time: .*\(2 lines"):
        cepheid.read(path)
    assert cepheid.read(path, bad_records="drop").num_rows == 4
    other = tmp_path / "other.log"
    other.write_text("hello\n")
    with pytest.raises(DataError, match="holds no events of format access-log: line 1 is not a line"):
        cepheid.read(other, "access-log")
    with pytest.raises(CepheidError, match="not clear from its name"):
        cepheid.read(other)
