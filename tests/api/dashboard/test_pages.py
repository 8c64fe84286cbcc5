"""The dashboard in Chromium, over an API with authentication."""

from contextlib import ExitStack

import httpx
import pytest

from redsched.store.embedded.server import PrivateServer
from tests.api.dashboard.parts import HOSTILE, Client, enter, open_without_token
from tests.auth.parts import token
from tests.support.browser import ENTER, RIGHT, TAB, Browser, shows
from tests.support.builders.reservations import reserved
from tests.support.waiting import patience_s, wait_until_sync


def test_the_token_is_asked_for_once_and_kept_in_the_tab(page: Browser, url: str) -> None:
    open_without_token(page, url, "")
    assert page.run("return document.activeElement.id") == "token"
    page.type("#token", token("revoked"))
    page.press(ENTER)
    page.wait_for("document.querySelector('#sign-in-problem').textContent.includes('does not accept')")
    assert page.text("main") == ""
    page.type("#token", token("reader"))
    page.press(ENTER)
    shows(page, "4 hosts")
    page.open(f"{url}/#/claims")
    page.run("location.reload()")
    shows(page, "web-1")
    assert not page.run("return document.querySelector('#sign-in').open")
    assert page.run("return [localStorage.length, document.cookie]") == [0, ""]
    page.click("#sign-out")
    page.wait_for("document.querySelector('#sign-in').open")


def test_a_token_that_is_entered_while_the_api_is_away_is_tried_again(page: Browser, url: str) -> None:
    open_without_token(page, url, "")
    page.run("window.calls = fetch; window.fetch = () => Promise.reject(new TypeError('away'))")
    page.type("#token", token("reader"))
    page.press(ENTER)
    shows(page, "the API cannot be reached", "Trying again every 5 seconds.", selector="#sign-in-problem")
    page.run("window.fetch = window.calls")
    shows(page, "4 hosts")
    assert not page.run("return document.querySelector('#sign-in').open")


def test_a_token_that_expires_is_asked_for_again_with_the_reason(page: Browser, url: str) -> None:
    """Several requests are on their way then, and each is refused."""
    enter(page, url, "reader", "#/claims")
    shows(page, "web-1")
    page.run(
        """
        window.refused = 0;
        window.fetch = async () => {
            await new Promise((resolve) => setTimeout(resolve, 300 * window.refused++));
            return Response.json({ detail: "the token has expired" }, { status: 401 });
        };
        """
    )
    page.run("location.hash = '#/host/h1'")
    page.wait_for("document.querySelector('#sign-in').open && window.refused >= 3")
    page.run("sessionStorage.setItem('redsched.token', 'entered meanwhile')")
    page.run("return new Promise((resolve) => setTimeout(resolve, 1500))")
    assert page.text("#sign-in-problem") == "the token has expired"
    assert page.run("return sessionStorage.getItem('redsched.token')") == "entered meanwhile"


def test_the_fleet_is_live(page: Browser, url: str, client: Client) -> None:
    """What the feed tells is shown without reading the hosts again: a claim, a new host, a host that is disabled."""
    enter(page, url, "reader")
    shows(page, "4 hosts, 3 open for claims; 3 claims.")
    page.wait_for("document.querySelector('#live').dataset.state === 'live'")
    try:
        client.claim("web-9", hosts=["h2"])
        shows(page, "; 4 claims.")
        client.send("POST", "/v1/hosts/h1/disable")
        shows(page, "2 open for claims")
        client.put_host("h4")
        shows(page, "5 hosts")
    finally:
        client.send("POST", "/v1/hosts/h1/enable")
        client.send("DELETE", "/v1/claims/web-9?force=true")
        client.send("DELETE", "/v1/hosts/h4?force=true")
    shows(page, "4 hosts, 3 open for claims; 3 claims.")


def test_a_fleet_without_hosts_says_why(page: Browser, url: str) -> None:
    enter(page, url, "reader")
    shows(page, "4 hosts")
    page.type("input[type=search]", "nowhere")
    shows(page, "No host has this in its name.")
    answers = "window.fetch = async (url, options) => String(url).startsWith('/v1/hosts') ? "
    for answer, text in (
        ("Promise.reject(new TypeError('away'))", "The hosts cannot be read: the API cannot be reached"),
        ("Response.json({ hosts: [], next: null })", "No hosts: each appears once its agent reports it."),
    ):
        page.run(f"window.calls ??= fetch; {answers}{answer} : window.calls(url, options)")
        page.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
        shows(page, text)


def test_the_map_has_a_keyboard_and_a_table_for_screen_readers(page: Browser, url: str) -> None:
    enter(page, url, "reader")
    shows(page, "4 hosts")
    page.run("document.querySelectorAll('canvas')[1].focus()")
    shows(page, "gpu1, up", selector=".tip")
    page.press(RIGHT)
    shows(page, "h2, up", selector=".tip")
    assert "Hosts of az2" in page.run("return document.activeElement.ariaLabel")
    page.press(ENTER)
    shows(page, "Host h2")
    page.run("history.back()")
    shows(page, "Hosts as a table")
    page.run("document.querySelector('#hosts summary').focus()")
    page.press(ENTER)
    shows(page, "gpu1", "disabled", selector="#hosts table")
    free = "[...document.querySelectorAll('#hosts tbody tr')].map((row) => row.cells[4].innerText)"
    assert "CUSTOM_GPU_MILLI=500 MEMORY_MB=65,536 PCPU=12 VCPU=25" in page.run(f"return {free}")
    unnamed = "[...document.querySelectorAll('input, select, textarea, canvas, button')].filter((one) => "
    unnamed += "!one.closest('label, dialog') && !one.ariaLabel && !one.textContent.trim()).length"
    assert page.run(f"return {unnamed}") == 0


def test_the_first_stop_of_the_keyboard_skips_the_navigation(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/claims")
    page.run("location.reload()")
    shows(page, "web-1")
    page.press(TAB)
    assert page.run("return document.activeElement.className") == "skip"
    page.press(ENTER)
    assert page.run("return [document.activeElement.id, location.hash]") == ["main", "#/claims"]


def test_the_page_of_a_host_shows_pools_claims_and_why_it_takes_none(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/host/gpu1")
    shows(page, "It takes claims.", "VCPU: 4 claimed, 3 external, 25 free of 32", "gpu0", "CUSTOM_GPU_T4", "render")
    shows(page, "device GPU-5fd4f087")
    held = "[...document.querySelectorAll('.meter .claim')].map((one) => one.title).sort()"
    assert page.run(f"return {held}") == ["web-2: 4", "web-2: 500", "web-3: 4"]
    page.wait_for("[...document.querySelectorAll('table')].at(-1).innerText.includes('web-3')")
    page.open(f"{url}/#/host/h3")
    shows(page, "It takes no claims:", "an operator has set it to disabled", "up, disabled")


def test_texts_of_the_fleet_are_shown_as_text(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/host/gpu1")
    shows(page, f"note={HOSTILE}")
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert "broken" not in page.run("return document.title")
    with pytest.raises(AssertionError, match="TrustedHTML"):
        page.run("document.querySelector('main').innerHTML = '<b>x</b>'")


def test_claims_are_found_by_filters_and_by_id(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/claims")
    shows(page, "web-1", "web-2", "web-3")
    heads = "[...document.querySelectorAll('main th')].map((one) => one.innerText)"
    assert page.run(f"return {heads}")[-2:] == ["Claimed", "Lease until"]
    page.type("input[name=consumer]", "render")
    page.press(ENTER)
    page.wait_for("!document.querySelector('main').innerText.includes('web-1')")
    shows(page, "web-3")
    page.type("input[name=id]", "web-2")
    page.press(ENTER)
    shows(page, "Claim web-2", "gpu0/CUSTOM_GPU_MILLI=500", "History")


def test_claims_have_a_column_and_a_filter_of_owners(page: Browser, url: str) -> None:
    """A claim for which nobody is named is of the token that made it."""
    enter(page, url, "reader", "#/claims")
    shows(page, "web-1", "web-3")
    rows = page.run(
        "return [...document.querySelectorAll('main tr')].map((row) => [...row.cells].map((one) => one.innerText))"
    )
    at = rows[0].index("Owner")
    owners = {row[0]: row[at] for row in rows[1:]}
    assert (owners["web-1"], owners["web-3"]) == ("operator", "ann")
    page.type("input[name=owner]", "ann")
    page.press(ENTER)
    page.wait_for("!document.querySelector('main').innerText.includes('web-1')")
    shows(page, "web-3")
    page.open(f"{url}/#/claim/web-3")
    shows(page, "Claim web-3", "Owner\nann")


def test_claims_that_are_about_to_expire_come_first_to_last(page: Browser, url: str, client: Client) -> None:
    """Work that runs has no lease."""
    kept = ("a-later", "b-sooner", "c-active")
    for claim_id, lease_s in zip(kept, (3500, 300, 3000), strict=True):
        client.claim(claim_id, hosts=["h1"], lease_s=lease_s)
    placed = client.send("GET", "/v1/claims/c-active").json()["token"]
    client.send("POST", "/v1/claims/c-active/confirm", {"token": placed})
    try:
        enter(page, url, "reader", "#/claims?state=expiring")
        shows(page, *kept[:2])
        ids = "[...document.querySelectorAll('main td:first-child')].map((one) => one.innerText)"
        found = page.run(f"return {ids}")
        assert (found[0], "c-active" in found) == ("b-sooner", False)
        assert found.index("a-later") > 0
        assert page.run("return document.querySelector('select[name=state]').value") == "expiring"
    finally:
        for claim_id in kept:
            client.send("DELETE", f"/v1/claims/{claim_id}?force=true")


def test_the_page_of_a_claim_says_why_it_is_on_its_host(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/claim/web-2")
    shows(page, "Why gpu1", "1 of 4 hosts fitted at ", "weighed by spread.", "Left out", "Best hosts")
    tables = "[...document.querySelectorAll('caption')].map((one) => one.textContent)"
    assert page.run(f"return {tables}")[:3] == ["What it holds", "Left out", "Best hosts"]
    cells = "[...document.querySelectorAll('[aria-label=\"Best hosts\"] td')].map((one) => one.textContent)"
    host, score, bar, *parts = page.run(f"return {cells}")
    assert (host, bar) == ("gpu1", "")
    assert abs(float(score) - sum(map(float, parts))) < 0.01


def test_what_a_host_keeps_and_the_claims_in_the_way_are_shown(page: Browser, url: str, server: PrivateServer) -> None:
    """With the request and its project, on the host's page and for near hosts."""
    with reserved(server.url, "h1", {"VCPU": 6}):
        enter(page, url, "operator", "#/host/h1")
        shows(page, "request big of project web", "6 kept")
        page.run("location.hash = '#/request'")
        page.wait_for("document.querySelector('input[name=resources]')")
        page.type("input[name=resources]", "VCPU=27")
        page.press(ENTER)
        shows(page, "VCPU=6 kept for request big of project web", "the end of web-2", selector="#findings")


def test_a_request_is_taken_apart_and_then_claimed(page: Browser, url: str, client: Client) -> None:
    enter(page, url, "operator", "#/request")
    page.type("input[name=resources]", "VCPU=9")
    page.press(ENTER)
    shows(page, "1 of 4 hosts fit", "Nearest misses", "Where it would go", "picked at random")
    shows(page, "VCPU", "disabled", selector="#findings table")
    shows(page, "Best hosts", "gpu1", "spread", selector="#findings")
    page.type("input[name=project]", "web")
    page.type("textarea", '{"consumer": "page"}')
    page.click("form.request button")
    page.wait_for("document.querySelector('#claim')")
    page.click("#claim")
    shows(page, "Claimed: key-")
    [claim] = client.send("GET", "/v1/claims?consumer=page").json()["claims"]
    assert (claim["host"], claim["slots"], claim["actor"]) == ("gpu1", {"VCPU": 9}, "operator")
    client.send("DELETE", f"/v1/claims/{claim['claim_id']}?force=true")


def test_a_request_names_what_is_unknown_and_hosts_that_would_fit(page: Browser, url: str) -> None:
    enter(page, url, "operator", "#/request")
    page.type("input[name=zone]", "az9")
    page.press(ENTER)
    shows(page, "Unknown: zone az9.", selector="#findings")
    page.type("input[name=zone]", "az2")
    page.press(ENTER)
    shows(page, "Would fit if they took claims", "h3", selector="#findings")


def test_invalid_requests_are_refused_with_the_reason(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/request")
    for resources, reason in (("VCPU", "is not CLASS=AMOUNT"), ("VCPU=0", "whole number from 1")):
        page.type("input[name=resources]", resources)
        page.press(ENTER)
        shows(page, reason, selector="#error")
    page.type("input[name=resources]", "VCPU=99")
    page.type("textarea", "{")
    page.click("form.request button")
    shows(page, "not JSON", selector="#error")


def test_each_role_gets_the_pages_that_it_may_use(page: Browser, url: str) -> None:
    for who, pages, may_claim in (
        ("reader", "Fleet Status Capacity Claims Quotas Groups Plans Performance Request", False),
        ("web", "Claims Quotas Request", True),
        ("of-h1", "Claims", False),
    ):
        enter(page, url, who)
        assert page.text("nav").split() == pages.split()
        shows(page, "web-1" if who != "reader" else "4 hosts")
        if "Request" in pages:
            page.open(f"{url}/#/request")
            page.type("input[name=resources]", "VCPU=1")
            page.press(ENTER)
            shows(page, "hosts fit", "Where it would go")
            assert bool(page.run("return document.querySelector('#claim') !== null")) is may_claim


def test_an_agent_sees_the_pages_of_its_own_hosts_only(page: Browser, url: str) -> None:
    enter(page, url, "of-h1", "#/host/h1")
    shows(page, "It takes claims.", "web-1")
    page.open(f"{url}/#/host/h2")
    shows(page, "h2", selector="#error")
    assert "It takes" not in page.text("main")


def test_a_page_that_is_left_gives_its_stream_back_until_somebody_returns(page: Browser, url: str) -> None:
    """The token may have 8, and Chromium keeps pages that were left."""
    live = "document.querySelector('#live').dataset.state === 'live'"
    enter(page, url, "reader")
    page.wait_for(live)
    page.run("dispatchEvent(new PageTransitionEvent('pagehide'))")
    headers = {"Authorization": f"Bearer {token('reader')}"}
    with httpx.Client(base_url=url, headers=headers, timeout=patience_s(20)) as session, ExitStack() as streams:
        for _ in range(8):
            wait_until_sync(lambda: _is_streamed(session, streams), what="a further stream is accepted")
    page.run("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    shows(page, "4 hosts, 3 open for claims; 3 claims.")
    page.wait_for(live)


def test_without_the_feed_the_page_says_so_and_reads_the_hosts(page: Browser, url: str) -> None:
    """The token has all its streams open already."""
    headers = {"Authorization": f"Bearer {token('reader')}"}
    page.open("about:blank")
    with httpx.Client(base_url=url, headers=headers, timeout=patience_s(20)) as session, ExitStack() as streams:
        for _ in range(8):  # one is refused until the API has noticed that the page of another test is closed
            wait_until_sync(lambda: _is_streamed(session, streams), what="a further stream is accepted")
        enter(page, url, "reader")
        shows(page, "4 hosts, 3 open for claims; 3 claims.")
        shows(page, "Without the feed", "which is the most", selector="#live")
        page.open("about:blank")


@pytest.mark.parametrize("hosts", ["read", "never answered"])
def test_a_feed_that_has_fallen_silent_is_not_called_live(page: Browser, url: str, hosts: str) -> None:
    """A network that is gone does not say so: here its silence is 45 seconds long after a second."""
    enter(page, url, "reader")
    shows(page, "4 hosts")
    begun = page.run(
        """
        const calls = fetch, waits = setTimeout, ping = new TextEncoder().encode(": ping");
        window.setTimeout = (what, ms, ...more) => waits(what, ms === 45_000 ? 1000 : ms, ...more);
        window.fetch = async (url, options) => url !== "/v1/changes" ? calls(url, options)
            : new Response(new ReadableStream({ start(stream) { stream.enqueue(ping); } }));
        dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
        return document.querySelector("#live").dataset.state;
        """
    )
    assert begun == "", "the state of the feed before is not kept"
    page.wait_for("document.querySelector('#live').dataset.state === 'live'")
    if hosts == "read":
        shows(page, "Without the feed", "the feed is silent", selector="#live")
    else:
        page.run("window.fetch = () => new Promise(() => {})")
        shows(page, "Not up to date", "the feed is silent", selector="#live")


def _is_streamed(session: httpx.Client, streams: ExitStack) -> bool:
    """Open a stream of changes until the end of `streams`; return whether it is accepted."""
    with ExitStack() as opened:
        accepted = opened.enter_context(session.stream("GET", "/v1/changes")).status_code == httpx.codes.OK
        if accepted:
            streams.enter_context(opened.pop_all())
        return accepted


def test_dark_and_light_follow_the_system(page: Browser, url: str) -> None:
    enter(page, url, "reader")
    ground = "return getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("light", "dark"):
        page.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen.append(page.run(ground))
    page.devtools("Emulation.setEmulatedMedia", features=[])
    assert seen == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]


def test_nothing_fails_in_the_console(page: Browser, url: str) -> None:
    """No page breaks the policy of its content, and no script fails."""
    enter(page, url, "operator")
    page.log()
    for place in ("#/fleet", "#/host/gpu1", "#/claims", "#/claim/web-1", "#/request"):
        page.open(f"{url}/{place}")
        page.wait_for("document.querySelector('h1') && !document.querySelector('#error')")
        shows(page, {"#/request": "Explain", "#/fleet": "4 hosts"}.get(place, "web"))
    assert page.log() == []


def test_the_map_shows_names_where_all_of_them_fit(page: Browser, url: str) -> None:
    """Each cell is as wide as the longest name, and has more than one colour; many hosts have squares without names."""
    enter(page, url, "reader")
    shows(page, "4 hosts")
    page.wait_for("document.querySelector('#map canvas')?.dataset.names === 'shown'")
    colours = """
        const canvas = document.querySelector("#map canvas");
        const {data} = canvas.getContext("2d").getImageData(3, 3, 22, 22);
        return new Set(new Uint32Array(data.buffer)).size;
    """
    assert page.run(colours) > 1
    cell = """
        const [zones, width] = arguments;
        const {cellFor} = await import("/assets/heat_map.js");
        return cellFor(zones.map((names) => names.map((name) => ({ name }))), width);
    """
    short, long = (page.run(cell, [[name] * 3], 900) for name in ("h1", "compute-17.rack-4"))
    assert short["isNamed"]
    assert long["isNamed"]
    assert short["height"] == long["height"] < long["width"]
    assert short["width"] < long["width"]
    assert not page.run(cell, [["compute-17.rack-4"] * 2000], 900)["isNamed"]
    assert not page.run(cell, [["compute-17.rack-4" * 20]], 900)["isNamed"]


def test_the_map_is_in_natural_order(page: Browser, url: str, client: Client) -> None:
    try:
        for name in ("ci-10", "ci-2"):
            client.put_host(name)
        enter(page, url, "reader")
        shows(page, "6 hosts")
        page.run("document.querySelector('#hosts summary').click()")
        shows(page, "ci-10", selector="#hosts table")
        names = page.run(
            "return [...document.querySelectorAll('#hosts tbody tr')].map((row) => row.cells[0].innerText)"
        )
        assert names.index("ci-2") < names.index("ci-10")
    finally:
        for name in ("ci-10", "ci-2"):
            client.send("DELETE", f"/v1/hosts/{name}?force=true")
