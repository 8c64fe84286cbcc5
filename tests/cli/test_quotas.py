"""`redsched quota list`, `show`, `set` and `delete`."""

from tests.cli.conftest import Redsched

BOTH_LINKS = True


def test_a_quota_from_set_to_delete(redsched: Redsched) -> None:
    assert redsched("quota", "list").check().output == "no quotas\n"
    redsched("quota", "show", "web").check_failed(4, "web")
    assert redsched("quota", "set", "web", "VCPU=3", "claims=2").check().output == "quota of project web is declared\n"
    redsched("select", "VCPU=2", "--project", "web").check()
    redsched("select", "VCPU=2", "--project", "web").check_failed(3, "2 of 3 VCPU are used, 2 more requested")
    explained = redsched("explain", "VCPU=2", "--project", "web").check(1).output.splitlines()
    assert explained[-1] == "the project's quota does not allow it: 2 of 3 VCPU are used, 2 more requested"
    assert "quota" not in redsched("explain", "VCPU=1", "--project", "web").check().output
    shown = redsched("quota", "show", "web").check().output.splitlines()
    assert [line.split() for line in shown[1:]] == [["web", "VCPU", "3", "2"], ["web", "claims", "2", "1"]]
    assert redsched("quota", "set", "web", "VCPU=4").check().output == "quota of project web is changed\n"
    [listed] = redsched("quota", "list", "--json").check().json()["quotas"]
    assert listed == {"project": "web", "limits": {"VCPU": 4}, "used": {"VCPU": 2, "claims": 1}}
    assert redsched("quota", "delete", "web").check().output == "quota of project web is deleted\n"
    redsched("quota", "delete", "web").check_failed(4, "web")


def test_bad_limits_are_named(redsched: Redsched) -> None:
    redsched("quota", "set", "web", "SEATS=1").check_failed(2, "SEATS")
    redsched("quota", "set", "web", "VCPU=-1").check_failed(2, "VCPU", "-1")
    redsched("quota", "set", "a b", "VCPU=1").check_failed(2, "a b")
