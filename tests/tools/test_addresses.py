"""Which URLs may be reached: a table of the ways to point a webhook at our own network."""

import socket
import string
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from landed.tools import addresses
from landed.tools.addresses import (
    ADDRESSES_MAX,
    URL_MAX_CHARS,
    Checked,
    Forbidden,
    Unresolved,
    check,
    refusal,
    system_resolver,
    target,
)
from tests.tools.calls import run

PUBLIC = "93.184.216.34"

# What the names of these tests resolve to. A name that is not here has no address.
NAMES = {
    "shop.example": [PUBLIC],
    "xn--bcher-kva.example": [PUBLIC],
    "both.example": [PUBLIC, "2606:2800:220:1:248:1893:25c8:1946"],
    "six.example": ["2606:2800:220:1:248:1893:25c8:1946"],
    "nat64.example": ["64:ff9b::5db8:d822"],
    "nat64-inside.example": ["64:ff9b::a9fe:a9fe"],
    "nat64-local.example": ["64:ff9b:1::5db8:d822"],
    "loopback.example": ["127.0.0.1"],
    "one-of-two.example": [PUBLIC, "10.0.0.5"],
    "last-of-three.example": [PUBLIC, "8.8.8.8", "::1"],
    "metadata.example": ["169.254.169.254"],
    "metadata6.example": ["fd00:ec2::254"],
    "mapped.example": ["::ffff:169.254.169.254"],
    "mapped-public.example": [f"::ffff:{PUBLIC}"],
    "compatible.example": ["::7f00:1"],
    "sixtofour.example": ["2002:7f00:1::"],
    "teredo.example": ["2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "zone.example": ["fe80::1%eth0"],
    "zone-public.example": ["2606:2800:220:1:248:1893:25c8:1946%eth0"],
    "nonsense.example": ["no address"],
    "none.example": [],
    "localhost": ["127.0.0.1"],
}

MAY = [
    "https://shop.example/hook",
    "https://shop.example",
    "HTTPS://SHOP.example/hook?a=b&c=d",
    "https://shop.example:443/",
    "https://shop.example:8443/",
    "https://shop.example:/",
    "https://bücher.example/",
    "https://xn--bcher-kva.example/",
    "https://both.example/",
    "https://six.example/",
    "https://nat64.example/",
    f"https://{PUBLIC}/hook",
    "https://[2606:2800:220:1:248:1893:25c8:1946]/hook",
    "https://shop.example/a@b",
    "https://shop.example/?to=//me@localhost",
]

MAY_NOT = [
    # Schemes, and what is no URL.
    "http://shop.example/",
    "http://shop.example:443/",
    "ftp://shop.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "//shop.example/",
    "shop.example/hook",
    "https:shop.example",
    "https:///hook",
    "https://",
    "",
    # Loopback and this host.
    "https://127.0.0.1/",
    "https://127.0.0.1:8443/",
    "https://127.255.255.254/",
    "https://0.0.0.0/",
    "https://0.1.2.3/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://a.localhost/",
    "https://localhost./",
    "https://[::1]/",
    "https://[::]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://loopback.example/",
    # The same in other forms.
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.01/",
    "https://127.0.0.1./",
    "https://%31%32%37.0.0.1/",
    "https://127.0.0.0x1/",
    "https://1.1.1.1.1/",
    "https://256.256.256.256/",
    "https://shop.0x1/",
    # Private, shared, link-local, metadata.
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://100.100.100.200/latest/meta-data/",
    "https://169.254.169.254/latest/meta-data/",
    "https://169.254.170.2/v2/credentials",
    "https://168.63.129.16/",
    "https://192.0.0.192/opc/v2/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "https://metadata.example/",
    "https://metadata6.example/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://zone.example/",
    "https://zone-public.example/",
    "https://[2606:2800:220:1:248:1893:25c8:1946%25eth0]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/latest/meta-data/",
    "https://[fec0::1]/",
    # For documentation, benchmarks, protocols; multicast, reserved, broadcast.
    "https://192.0.2.1/",
    "https://198.51.100.1/",
    "https://203.0.113.1/",
    "https://198.18.0.1/",
    "https://192.88.99.1/",
    "https://224.0.0.1/",
    "https://239.255.255.250/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[ff02::1]/",
    "https://[2001:db8::1]/",
    "https://[3fff::1]/",
    "https://[100::1]/",
    "https://[5f00::1]/",
    # IPv4 inside IPv6.
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::127.0.0.1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[64:ff9b:1::5db8:d822]/",
    "https://mapped.example/",
    "https://mapped-public.example/",
    "https://compatible.example/",
    "https://sixtofour.example/",
    "https://teredo.example/",
    "https://nat64-inside.example/",
    "https://nat64-local.example/",
    # Names that mean something at home only, and one bad address among good ones.
    "https://intranet/",
    "https://redis/",
    "https://db.local/",
    "https://vault.internal/",
    "https://router.home.arpa/",
    "https://hidden.onion/",
    "https://one-of-two.example/",
    "https://last-of-three.example/",
    "https://nonsense.example/",
    # What people and programs read differently.
    "https://shop.example@127.0.0.1/",
    "https://user:password@shop.example/",
    "https://@shop.example/",
    "https://shop.example:443@127.0.0.1/",
    "https://127.0.0.1\\@shop.example/",
    "https://shop.example\\@127.0.0.1/",
    "https://shop.example/a\\b",
    "https://shop.example/#@127.0.0.1/",
    "https://shop.example#@127.0.0.1/",
    "https://127.0.0.1#shop.example",
    " https://shop.example/",
    "https://shop.example/\r\nHost: localhost",
    "https://shop.example\t/",
    "https://shop.example/a b",
    "https://shop.example\x00.local/",
    "https://shop%2eexample/",
    "https://shop..example/",
    "https://.shop.example/",
    "https://shop.example./",
    "https://-shop.example/",
    "https://shop_.example/",
    "https://[::1/",
    "https://[127.0.0.1]/",
    "https://[shop.example]/",
    # Confusables, as IDNA reads them.
    "https://127。0。0。1/",
    "https://127．0．0．1/",  # noqa: RUF001
    "https://１２７.0.0.1/",  # noqa: RUF001
    "https://①②⑦.⓪.⓪.①/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "https://localhost。/",
    "https://exa\u00admple.example/",
    "https://shop\u200b.example/",
    "https://loopbacK.example/".replace("K", "\u212a"),
    # Ports.
    "https://shop.example:22/",
    "https://shop.example:25/",
    "https://shop.example:80/",
    "https://shop.example:6379/",
    "https://shop.example:0/",
    "https://shop.example:-1/",
    "https://shop.example:65979/",
    "https://shop.example:99999/",
    "https://shop.example:443:443/",
    "https://shop.example:x/",
    # Lengths.
    f"https://shop.example/{'a' * URL_MAX_CHARS}",
    f"https://{'a' * 64}.example/",
    f"https://{'a.' * 127}example/",
]


async def names(host: str, port: int) -> Sequence[str]:
    return NAMES[host]


def checked(url: str, *, loopback: bool = False) -> Checked | Forbidden | Unresolved:
    return run(check(url, names, loopback=loopback))


@pytest.mark.fault("X92")
@pytest.mark.parametrize("url", MAY)
def test_a_public_https_url_may_be_reached(url: str) -> None:
    found = checked(url)
    assert isinstance(found, Checked), found
    assert found.address == NAMES.get(found.host, [found.host])[0]
    assert found.port in {443, 8443}


@pytest.mark.fault("X92")
@pytest.mark.parametrize("url", MAY_NOT, ids=lambda url: ascii(url)[1:60])
def test_no_other_url_may(url: str) -> None:
    found = checked(url)
    assert isinstance(found, Forbidden), found
    assert found.reason
    assert "\n" not in found.reason


@pytest.mark.fault("X92")
@pytest.mark.parametrize("url", ["http://shop.example/", "http://shop.example:8443/"])
def test_plain_http_is_refused_for_what_it_is(url: str) -> None:
    assert checked(url) == Forbidden(reason="the URL is not https")


@pytest.mark.fault("X92")
def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(set(MAY_NOT)) == len(MAY_NOT) >= 80


@pytest.mark.fault("X92")
def test_a_forbidden_url_is_not_looked_up_where_its_text_says_so() -> None:
    asked: list[str] = []

    async def asking(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return [PUBLIC]

    for url in (
        "https://localhost/",
        "https://127.1/",
        "http://shop.example/",
        f"https://{PUBLIC}",
    ):
        run(check(url, asking))
    assert asked == []


@pytest.mark.parametrize("url", ["https://none.example/", "https://unheard.example/"])
def test_a_name_without_an_address_is_unresolved_and_not_forbidden(url: str) -> None:
    assert isinstance(checked(url), Unresolved)


def test_a_name_with_very_many_addresses_is_refused() -> None:
    async def many(host: str, port: int) -> Sequence[str]:
        return [f"8.8.{n}.8" for n in range(ADDRESSES_MAX + 1)]

    assert isinstance(run(check("https://shop.example/", many)), Forbidden)


@pytest.mark.fault("X92")
@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("http://127.0.0.1:5000/", True),
        ("http://[::1]:5000/", True),
        ("http://localhost:5000/", True),
        ("https://localhost:5000/", True),
        ("https://loopback.example/", True),
        ("http://shop.example/", False),
        ("http://10.0.0.1/", False),
        ("https://10.0.0.1/", False),
        ("https://169.254.169.254/", False),
        ("https://[::ffff:127.0.0.1]/", False),
        ("https://one-of-two.example/", False),
        ("https://0.0.0.0/", False),
        ("ftp://127.0.0.1/", False),
    ],
)
def test_for_tests_loopback_is_allowed_and_nothing_else(url: str, may: bool) -> None:
    assert isinstance(checked(url, loopback=True), Checked) is may


@pytest.mark.fault("X92")
@given(st.ip_addresses())
@example(ip_address("192.0.0.8"))
def test_what_python_knows_to_be_special_is_refused(address: IPv4Address | IPv6Address) -> None:
    special = not address.is_global or address.is_multicast or address.is_reserved
    if special and address not in addresses.NAT64:
        assert refusal(str(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_behind_a_translator(address: IPv4Address) -> None:
    behind = IPv6Address(int(addresses.NAT64.network_address) | int(address))
    assert refusal(str(behind)) == refusal(str(address))


# Letters, and what IDNA, Unicode and URLs make of something that looks like one.
TRICKS = "\u3002\uff0e\uff61\u2460\uff41\u00ad\u200b\ud800\u00df"
NASTY = st.text(st.sampled_from([*string.printable, *TRICKS]), max_size=30)


@pytest.mark.fault("X92")
@given(st.builds("https://{}".format, NASTY) | st.text(max_size=40))
@example("https://\u06dd")
@example("https://xn--/")
@example("https://\ud800/")
def test_any_text_is_judged_and_none_escapes(url: str) -> None:
    found = checked(url)
    if isinstance(found, Checked):
        assert found.host in {*NAMES, found.address}
        # What would be sent is read by the same parser, and leads to the same host.
        assert httpx2.URL(url).raw_host.decode() == found.host
        assert not any(refusal(each) for each in found.addresses)
    else:
        assert isinstance(found, Forbidden | Unresolved)


def test_the_system_resolves_names_in_a_thread_of_its_own() -> None:
    assert "127.0.0.1" in run(system_resolver("127.0.0.1", 443))


def test_a_system_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: held.wait(20))
    monkeypatch.setattr(addresses, "RESOLVE_MAX_S", 0.05)
    try:
        found = run(check("https://shop.example/", system_resolver))
    finally:
        held.set()
    assert isinstance(found, Unresolved)


def test_a_form_can_judge_a_url_without_a_look_up() -> None:
    assert target("https://shop.example/hook") == (False, "shop.example", 443)
    assert isinstance(target("https://127.0.0.1/"), Forbidden)
