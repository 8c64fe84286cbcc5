"""The pages of the status, capacity, quotas, groups, plans and performance, in Chromium."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.dashboard.parts import Client, enter
from tests.support.browser import ENTER, TAB, Browser, shows
from tests.support.waiting import wait_until_sync

WIDTHS = (360, 1280, 1920)
PAGES = ("status", "capacity?by=zone", "quotas", "groups", "group/db", "plans", "performance")


@pytest.fixture(scope="module", autouse=True)
def declared(client: Client) -> Iterator[None]:
    """Have quotas of which one is exceeded, a server group with members, and an aggregate."""
    client.send("PUT", "/v1/quotas/web", {"limits": {"VCPU": 5, "claims": 100}})
    client.send("PUT", "/v1/server-groups/db", {"policy": "anti-affinity"})
    client.send("PUT", "/v1/aggregates/ssd", {"metadata": {"disk": "ssd"}, "hosts": ["h1", "h2"]})
    for number, host in enumerate(("h1", "h2")):
        asked = {"resources": {"VCPU": 1}, "hosts": [host], "server_group": "db", "lease_s": 3600}
        client.send("POST", "/v1/selections", {**asked, "claim_ids": [f"db-{number}"]})
    yield
    for number in range(2):
        client.send("DELETE", f"/v1/claims/db-{number}?force=true")
    client.send("DELETE", "/v1/quotas/web")
    client.send("DELETE", "/v1/server-groups/db?force=true")
    client.send("DELETE", "/v1/aggregates/ssd?force=true")


def cells(page: Browser, caption: str) -> list[list[str]]:
    """Return the rows of a table."""
    return list(
        page.run(
            'return [...document.querySelectorAll(`[aria-label="${arguments[0]}"] tbody tr`)]'
            ".map((row) => [...row.cells].map((cell) => cell.innerText))",
            caption,
        )
    )


def test_what_is_wrong_is_above_every_page_with_what_to_do(page: Browser, url: str, client: Client) -> None:
    """A host is down: nobody reports it any more."""
    client.put_host("h9", lease_s=2)
    try:
        wait_until_sync(lambda: down_of(client) != [], what="h9 is down")
        [first] = down_of(client)
        enter(page, url, "reader", "#/quotas")
        assert "h9" in first["about"]
        shows(page, "host h9 has been down for", selector="#banner")
        page.click("#banner a")
        shows(page, "problem", "host h9 has been down for", first["advice"][1:], *first["commands"])
    finally:
        client.send("DELETE", "/v1/hosts/h9?force=true")


def down_of(client: Client) -> list[dict[str, Any]]:
    """Return the problem that hosts are down, if they are. On a busy machine there may be others beside it."""
    return [one for one in client.send("GET", "/v1/status").json()["problems"] if one["kind"] == "host-down"]


def test_the_status_shows_cells_schedulers_and_the_store(page: Browser, url: str, client: Client) -> None:
    enter(page, url, "reader", "#/status")
    shows(page, "Cell c1", ", settled", "4: 4 up; of them 1 disabled", "Durability of this API's claims: none")
    shows(page, "The store has kept its data since", "UTC (")
    [server] = client.send("GET", "/v1/status").json()["servers"]
    [row] = cells(page, "Servers")
    assert row[1] == server["version"]
    assert "primary with 0 replicas" in row
    page.wait_for("document.querySelector('[aria-label=\"Schedulers\"] tbody tr')")
    assert (
        cells(page, "Schedulers")[0][0]
        == client.send("GET", "/v1/status").json()["cells"][0]["schedulers"][0]["version"]
    )


def test_a_status_that_cannot_be_read_is_not_good(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/status")
    shows(page, "Cell c1")
    page.run("window.fetch = () => Promise.reject(new TypeError('away'))")
    shows(page, "It cannot be read now. What follows was so at ", "Cell c1")
    assert page.run("return document.querySelector('.verdict, .good')") is None


def test_the_capacity_is_that_of_the_api_by_class_and_zone(page: Browser, url: str, client: Client) -> None:
    enter(page, url, "reader", "#/capacity?by=zone")
    shows(page, "Amounts by zone and class", "az2")
    rows = {(row[0], row[1]): row for row in cells(page, "Amounts by zone and class")}
    for zone in client.send("GET", "/v1/capacity?by=zone").json()["capacity"]:
        for name, one in zone["classes"].items():
            shown = rows[zone["name"], name]
            columns = ("claimed", "external", "kept", "free", "away", "total", "largest")
            assert [int(text.replace(",", "")) for text in shown[4:11]] == [one[column] for column in columns]
    page.run("document.querySelector('select[name=by]').value = 'project'")
    page.run("document.querySelector('select[name=by]').dispatchEvent(new Event('change'))")
    shows(page, "Amounts by project and class", "The total is that of all hosts.")


def test_how_many_more_fit_is_planned_with_what_could_fail(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/capacity")
    page.type("input[name=room]", "VCPU=20")
    page.run("document.querySelector('select[name=n-plus-one]').value = 'host'")
    page.click("main form button.main")
    shows(page, "1 more place", "Without 3 hosts of 4, some claims have no other place", "web-2", selector="#room")
    page.type("input[name=room]", "VCPU")
    page.press(ENTER)
    shows(page, "is not CLASS=AMOUNT", selector="#error")


def test_limits_that_are_exceeded_are_named(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/quotas")
    shows(page, "1 project with a quota. 1 limit exceeded.")
    rows = cells(page, "Limits, by project")
    assert [row[1:2] + row[3:] for row in rows] == [
        ["VCPU", "120 %", "6", "5", "exceeded"],
        ["claims", "3 %", "3", "100", ""],
    ]


def test_a_limit_of_nothing_is_not_nearly_used_up(page: Browser, url: str, client: Client) -> None:
    client.send("PUT", "/v1/quotas/idle", {"limits": {"VCPU": 0, "claims": 10}})
    try:
        enter(page, url, "reader", "#/quotas")
        shows(page, "2 projects with a quota. 1 limit exceeded.")
        assert page.text("main p") == "2 projects with a quota. 1 limit exceeded."
        assert [row[-1] for row in cells(page, "Limits, by project")[:2]] == ["", ""]
    finally:
        client.send("DELETE", "/v1/quotas/idle")


def test_groups_show_where_their_members_are(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/groups")
    shows(page, "anti-affinity", "disk=ssd")
    page.click('a[href="#/group/db"]')
    shows(page, "Server group db", "2 claims", "Members by host")
    assert cells(page, "Members by host") == [["h1", "1"], ["h2", "1"]]


@pytest.mark.parametrize("place", ["quotas", "claims", "claim/web-1", "host/h1"])
def test_a_page_is_read_again_by_itself_while_the_api_is_away(page: Browser, url: str, place: str) -> None:
    enter(page, url, "operator", "#/status")
    shows(page, "Cell c1")
    page.run("window.calls = fetch; window.fetch = () => Promise.reject(new TypeError('away'))")
    page.run("location.hash = arguments[0]", f"#/{place}")
    shows(page, "the API cannot be reached", "Trying again every 5 seconds.", selector="#error")
    page.run("window.fetch = window.calls")
    page.wait_for("!document.querySelector('#error') && document.querySelector('main tbody td, main dd')")


def test_an_error_that_does_not_pass_is_not_tried_again(page: Browser, url: str) -> None:
    enter(page, url, "operator", "#/claim/nowhere")
    shows(page, "nowhere", selector="#error")
    assert "Trying again" not in page.text("#error")
    assert "Reading" not in page.text("main")


@pytest.mark.parametrize("place", ["quotas", "claims", "claim/web-1"])
def test_a_page_that_is_refused_is_not_called_being_read(page: Browser, url: str, place: str) -> None:
    enter(page, url, "operator", "#/status")
    shows(page, "Cell c1")
    page.run("window.fetch = async () => new Response(JSON.stringify({ detail: 'not for you' }), { status: 403 })")
    page.run("location.hash = arguments[0]", f"#/{place}")
    shows(page, "not for you", selector="#error")
    assert "Reading" not in page.text("main")


def test_the_status_is_read_at_once_when_the_tab_becomes_visible(page: Browser, url: str) -> None:
    enter(page, url, "operator", "#/fleet")
    shows(page, "4 hosts")
    page.run(
        """
        window.reads = 0;
        const calls = fetch;
        window.fetch = (url, options) => (window.reads += url === "/v1/status", calls(url, options));
        const become = (hidden) => {
          Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        };
        become(true);
        become(false);
        """
    )
    assert page.run("return window.reads") == 1


@pytest.mark.parametrize(("kind", "href"), [("ending", "#/claim/a%2Fb"), ("host-down", "#/host/a%2Fb")])
def test_a_problem_leads_to_what_it_is_about(page: Browser, url: str, kind: str, href: str) -> None:
    """The response has a problem that takes a minute to become one."""
    enter(page, url, "reader", "#/fleet")
    shows(page, "Take claims")
    problem = {"kind": kind, "cell": "c1", "detail": "it is stuck", "advice": "", "commands": [], "about": ["a/b"]}
    page.run(
        """
        const calls = fetch;
        window.fetch = async (url, options) => {
            const response = await calls(url, options);
            if (!String(url).startsWith("/v1/status")) return response;
            return Response.json({ ...await response.json(), healthy: false, problems: [arguments[0]] });
        };
        """.replace("arguments[0]", json.dumps({**problem, "count": 1}))
    )
    page.run("location.hash = '#/status'")
    page.wait_for(f"document.querySelector('section.bad a[href=\"{href}\"]')", timeout=60)


def test_a_drain_is_planned_and_begun_after_a_question(page: Browser, url: str, client: Client) -> None:
    enter(page, url, "operator", "#/plans?host=h1")
    page.click("main form button.main")
    shows(page, "claim", "Without another place", selector="#drain")
    assert client.send("GET", "/v1/hosts/h1").json()["status"] == "enabled"
    page.click("#drain-now")
    shows(page, "h1: no new claims", selector="#confirm")
    page.press(ENTER)  # the focus is on the answer that changes nothing
    page.wait_for("!document.querySelector('#confirm')")
    assert client.send("GET", "/v1/hosts/h1").json()["status"] == "enabled"
    page.click("#drain-now")
    page.press(TAB, ENTER)
    try:
        shows(page, "Draining: h1", selector="#drain")
        assert client.send("GET", "/v1/hosts/h1").json()["status"] == "draining"
    finally:
        client.send("POST", "/v1/hosts/h1/enable")


def test_a_drain_that_fails_says_which_hosts_are_draining_already(page: Browser, url: str, client: Client) -> None:
    enter(page, url, "operator", "#/plans?host=h1")
    page.type("input[name=hosts]", "h1 h2")
    page.click("main form button.main")
    shows(page, "claim", selector="#drain .verdict")
    page.run(
        """
        const calls = fetch;
        window.fetch = async (url, options) => !url.endsWith("/h2/drain") ? calls(url, options)
            : new Response(JSON.stringify({ detail: "h2 has changed" }), { status: 409 });
        """
    )
    page.click("#drain-now")
    page.press(TAB, ENTER)
    try:
        shows(page, "h2 has changed", selector="#error")
        shows(page, "Draining: h1 (their", selector="#drain")
        assert page.run("return document.querySelector('#drain-now').disabled") is False
        page.run("window.fetch = async () => new Response(null, { status: 204 })")
        page.click("#drain-now")
        page.press(TAB, ENTER)
        shows(page, "Draining: h1 h2 (their", selector="#drain")
        assert page.run("return document.querySelector('#error')") is None
    finally:
        client.send("POST", "/v1/hosts/h1/enable")


def test_the_loss_of_hosts_is_planned_and_unknown_ones_are_refused(page: Browser, url: str) -> None:
    enter(page, url, "operator", "#/plans?host=nowhere")
    page.click("main form button.main")
    shows(page, "nowhere", selector="#error")
    page.type("input[name=hosts]", "gpu1")
    page.run("document.querySelector('select[name=kind]').value = 'without'")
    page.click("main form button.main")
    shows(page, "would have no other place", "web-3", selector="#drain")
    assert page.run("return document.querySelector('#drain-now')") is None, "what has died is not drained"


def test_moves_are_planned_and_the_first_that_fails_ends_them(page: Browser, url: str, client: Client) -> None:
    """A claim without conditions would leave the host that is to be emptied, but is gone."""
    asked = {"resources": {"VCPU": 1}, "zone": ["az1", "az2"], "claim_ids": ["loose"], "lease_s": 3600}
    client.send("POST", "/v1/selections", asked)
    try:
        first = client.send("GET", "/v1/claims/loose").json()
        client.send("POST", "/v1/claims/loose/confirm", {"token": first["token"]})
        enter(page, url, "operator", "#/plans")
        page.run("document.querySelector('select[name=aim]').value = 'drain'")
        page.run("document.querySelector('select[name=aim]').dispatchEvent(new Event('change'))")
        page.type("input[name=emptied]", first["host"])
        page.run("document.querySelectorAll('main form')[1].requestSubmit()")
        shows(page, "1 move: claims left on the hosts", selector="#rebalance")
        [[claim, _, source, target, _]] = cells(page, "Moves, in this order")
        assert (claim, source) == ("loose", first["host"])
        page.click("#apply")
        shows(page, "1 claim will be moved", selector="#confirm")
        client.send("DELETE", "/v1/claims/loose?force=true")  # meanwhile somebody else ends it
        page.press(TAB, ENTER)
        shows(page, f"Move 1 of 1: loose to {target}", selector="#rebalance")
        shows(page, "0 of 1 move made. loose was not moved: ", selector="#error")
    finally:
        client.send("DELETE", "/v1/claims/loose?force=true")


def test_a_reader_plans_and_gets_no_button_that_changes_anything(page: Browser, url: str) -> None:
    enter(page, url, "reader", "#/plans?host=h1")
    page.click("main form button.main")
    shows(page, "claim", selector="#drain")
    assert page.run("return document.querySelector('#drain-now, #apply')") is None


def test_performance_is_plotted_with_the_numbers_as_a_table(page: Browser, url: str, client: Client) -> None:
    enter(page, url, "reader", "#/performance")
    page.wait_for("document.querySelectorAll('.plot').length === 5")
    client.claim("seen", hosts=["h2"], project="other")
    try:
        decision = "[...document.querySelectorAll('.plot')].find((one) => one.innerText.startsWith('Decision'))"
        page.wait_for(f"/median [\\d.]+ (µs|ms)/.test({decision}.querySelector('figcaption').innerText)")
        page.run(f"{decision}.querySelector('details').open = true")
        assert "s" in page.run(f"return {decision}.querySelector('tbody td:nth-child(2)').innerText")
        assert page.run(f"return {decision}.querySelectorAll('path').length") == 2
    finally:
        client.send("DELETE", "/v1/claims/seen?force=true")


def test_rates_are_of_the_time_that_has_passed(page: Browser, url: str) -> None:
    """A browser wakes hidden tabs only once a minute: here each read comes 15 seconds after the one before."""
    enter(page, url, "reader", "#/quotas")
    page.run(
        """
        let reads = 0;
        const calls = fetch;
        window.fetch = async (url, options) => url !== "/metrics" ? calls(url, options)
            : new Response(`redsched_selections_total{outcome="claimed"} ${150 * ++reads}`);
        performance.now = () => 15_000 * reads;
        """
    )
    page.run("location.hash = '#/performance'")
    shows(page, "Selections a second: selections 10.0, up to 10.0")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_window(page: Browser, url: str, width: int) -> None:
    enter(page, url, "operator", "#/status")
    page.devtools("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    try:
        for name in PAGES:
            page.run("location.hash = arguments[0]", f"#/{name}")
            page.wait_for("document.querySelector('main h1')")
            assert page.run("return document.documentElement.scrollWidth") <= width, name
    finally:
        page.devtools("Emulation.clearDeviceMetricsOverride")


def test_nothing_fails_in_the_console(page: Browser, url: str) -> None:
    enter(page, url, "operator", "#/status")
    page.log()
    for name in PAGES:
        page.run("location.hash = arguments[0]", f"#/{name}")
        page.wait_for("document.querySelector('main h1')")
    shows(page, "Performance")
    assert page.log() == []
