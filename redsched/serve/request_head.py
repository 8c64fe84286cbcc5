"""What RFC 9112 requires of a request's head, and the parser and uvicorn do not check.

Anything that a proxy may read otherwise than this server is refused before the request begins: with two readings of the
same bytes, a client can slip a request past the proxy's rules.
"""

import re
from collections.abc import Iterable

from redsched.serve.problems import BadHttp

_VERSIONS = ("1.0", "1.1")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?")


def problem_of_head(version: str, method: bytes, headers: Iterable[tuple[bytes, bytes]]) -> BadHttp | None:
    """Return why a request with this head is refused; None if it is not. Names of headers are in lower case."""
    if version not in _VERSIONS:
        return BadHttp(f"HTTP/{version} is not supported: send HTTP/1.1")
    if method == b"CONNECT":
        return BadHttp("no tunnel can be opened: send another method than CONNECT")
    hosts = []
    for name, value in headers:
        if name == b"host":
            hosts.append(value)
        elif name == b"transfer-encoding" and (refusal := _problem_of_coding(version, value)):
            return refusal
    return _problem_of_hosts(version, hosts)


def head_without_offer(version: str, method: bytes, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the head of a request without the offer to go on in another protocol."""
    lines = [b"%b: %b\r\n" % (name, value) for name, value in headers if name not in (b"upgrade", b"http2-settings")]
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, url, version.encode(), b"".join(lines))


def _problem_of_coding(version: str, coding: bytes) -> BadHttp | None:
    if version == "1.0":
        return BadHttp("HTTP/1.0 has no Transfer-Encoding: send Content-Length, or HTTP/1.1")
    if coding.strip().lower() != b"chunked":
        return BadHttp("the only Transfer-Encoding that is supported is chunked: send no other")
    return None


def _problem_of_hosts(version: str, hosts: list[bytes]) -> BadHttp | None:
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return BadHttp(f"the request has {len(hosts)} Host headers: send one")
    if hosts and not _HOST.fullmatch(hosts[0].strip()):
        return BadHttp("the Host header is not a host with an optional port: correct it")
    return None
