"""Bearer tokens of a provider: which are accepted, which forgeries are not, and who the caller is."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from jwt.algorithms import HMACAlgorithm

from redsched.auth.authenticator import Authenticator
from redsched.auth.oidc import verification
from redsched.auth.oidc.verification import LEEWAY_S, REFUSED
from redsched.errors import Unauthenticated
from redsched.model.role import Role
from tests.auth.oidc.provider import KEYS, Provider, private_key, public_jwk
from tests.auth.parts import authenticator, document, entry, token, write


def of(oidc: Provider, tmp_path: Path, **fields: Any) -> Authenticator:
    return authenticator(write(tmp_path / "tokens.yaml", yaml.safe_dump({"oidc": oidc.config(**fields)})))


@pytest.fixture
def auth(oidc: Provider, tmp_path: Path) -> Authenticator:
    return of(oidc, tmp_path)


async def refusal(auth: Authenticator, text: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await auth.identify(text)
    return caught.value.detail


async def test_a_token_of_the_provider_is_accepted(auth: Authenticator, oidc: Provider) -> None:
    text = oidc.token()
    caller = await auth.identify(text)
    assert (caller.id, caller.role) == ("oidc:alice", Role.OPERATOR)
    assert auth.still_valid(caller)
    assert await auth.identify(text) is caller
    assert len(oidc.asked) == 2, "discovery and keys are fetched once"


async def test_the_claims_give_role_and_projects(oidc: Provider, tmp_path: Path) -> None:
    auth = of(oidc, tmp_path, role_claim="realm_access.roles", projects_claim="teams")
    caller = await auth.identify(oidc.token(realm_access={"roles": ["x", "web"]}, teams=["db", "", 7]))
    assert (caller.role, caller.claim_prefix) == (Role.TENANT, "web-")
    assert caller.projects == {"web", "db", ""}
    assert caller.expires_at_s is not None
    assert 0 < caller.expires_at_s - time.time() <= 600 + LEEWAY_S


async def test_the_subject_owns_claims_and_the_role_says_which_it_changes(oidc: Provider, tmp_path: Path) -> None:
    """Without `project_wide` a role is as it was before claims had owners."""
    tenant = {"role": "tenant", "projects": ["web"]}
    roles = {"lead": {**tenant, "project_wide": True}, "team": {**tenant, "project_wide": False}, "old": tenant}
    auth = of(oidc, tmp_path, roles=roles)
    callers = {name: await auth.identify(oidc.token(groups=[name], sub="ann")) for name in roles}
    assert {one.owner for one in callers.values()} == {"oidc:ann"}
    assert {name: one.own_only for name, one in callers.items()} == {"lead": False, "team": True, "old": False}


async def test_a_role_claim_may_be_one_text_or_a_name_with_dots(oidc: Provider, tmp_path: Path) -> None:
    auth = of(oidc, tmp_path, role_claim="https://example.com/role")
    assert (await auth.identify(oidc.token(**{"https://example.com/role": "ops"}))).role is Role.OPERATOR


async def test_the_first_role_of_the_file_counts(auth: Authenticator, oidc: Provider) -> None:
    assert (await auth.identify(oidc.token(groups=["web", "ops"]))).role is Role.OPERATOR


@pytest.mark.parametrize("groups", [None, [], "", "Ops", ["ops "], [["ops"]], {"ops": 1}, 7])
async def test_a_token_without_a_known_role_is_refused(auth: Authenticator, oidc: Provider, groups: object) -> None:
    assert "has no role: its claim 'groups'" in await refusal(auth, oidc.token(groups=groups))


@pytest.mark.parametrize(("teams", "words"), [([], "no project"), (["a b"], "not a name")])
async def test_a_tenant_needs_projects(oidc: Provider, tmp_path: Path, teams: list[str], words: str) -> None:
    auth = of(oidc, tmp_path, roles={"ops": {"role": "tenant"}}, projects_claim="teams")
    assert words in await refusal(auth, oidc.token(teams=teams))


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_every_kind_of_key_is_accepted_if_it_is_listed(oidc: Provider, tmp_path: Path, algorithm: str) -> None:
    oidc.documents[KEYS] = {"keys": [public_jwk(kind, kind) for kind in ("RSA", "EC", "OKP")]}
    key_id = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}[algorithm]
    text = oidc.token(algorithm, key_id)
    assert (await of(oidc, tmp_path, algorithms=[algorithm]).identify(text)).id == "oidc:alice"
    other = "ES256" if algorithm != "ES256" else "RS256"
    assert await refusal(of(oidc, tmp_path, algorithms=[other]), text) == REFUSED


async def test_a_token_without_a_key_id_needs_a_single_key(oidc: Provider, tmp_path: Path) -> None:
    assert (await of(oidc, tmp_path).identify(oidc.token(key_id=None))).id == "oidc:alice"
    oidc.documents[KEYS] = {"keys": [public_jwk("RSA", "k1"), public_jwk("RSA", "k2", "second")]}
    assert await refusal(of(oidc, tmp_path), oidc.token(key_id=None)) == REFUSED


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _with_header(text: str, **fields: object) -> str:
    header = {**jwt.get_unverified_header(text), **fields}
    return ".".join([_part(header), *text.split(".")[1:]])


def _claims(oidc: Provider) -> dict[str, Any]:
    return dict(jwt.decode(oidc.token(), options={"verify_signature": False}))


def forgeries(oidc: Provider) -> dict[str, str]:
    good = oidc.token()
    header, claims, signature = good.split(".")
    public = private_key("RSA").public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    hs_header = _part({"alg": "HS256", "kid": "k1", "typ": "JWT"})
    hs256 = HMACAlgorithm(HMACAlgorithm.SHA256).sign(f"{hs_header}.{claims}".encode(), pem)
    hs_signature = base64.urlsafe_b64encode(hs256).decode().rstrip("=")
    now = int(time.time())
    deep = base64.urlsafe_b64encode(b"[" * 9000).decode().rstrip("=")
    return {
        "signed by another key": oidc.token(name="stranger"),
        "other claims": f"{header}.{_part({**_claims(oidc), 'sub': 'bob'})}.{signature}",
        "no signature": f"{header}.{claims}.",
        "alg none": f"{_part({'alg': 'none', 'kid': 'k1'})}.{claims}.",
        "alg None": f"{_part({'alg': 'None', 'kid': 'k1'})}.{claims}.{signature}",
        "no alg": f"{_part({'kid': 'k1'})}.{claims}.{signature}",
        "HS256 with the public key": f"{hs_header}.{claims}.{hs_signature}",
        "another audience": oidc.token(aud="other"),
        "no audience": oidc.token(aud=None),
        "another issuer": oidc.token(iss="https://evil.example.com"),
        "no issuer": oidc.token(iss=None),
        "no subject": oidc.token(sub=None),
        "no expiry": oidc.token(exp=None),
        "an infinite expiry": oidc.token(exp=float("inf")),
        "an expiry that is no number": oidc.token(exp="soon"),
        "not yet valid": oidc.token(nbf=now + 300),
        "issued in the future": oidc.token(iat=now + 300),
        "an unknown key": oidc.token(key_id="k9"),
        "a key id that is no text": _with_header(good, kid=7),
        "a critical header": _with_header(good, crit=["b64"], b64=False),
        "a key in the header": _with_header(oidc.token(name="stranger"), jwk=public_jwk("RSA", "k1", "stranger")),
        "a URL of keys in the header": _with_header(oidc.token(name="stranger"), jku="http://127.0.0.1:1/keys"),
        "nested deeply": f"{deep}.{claims}.{signature}",
        "not base64": "%.%.%",
        "not UTF-8": "\udcff.a.b",
        "empty": "..",
        "huge": f"{header}.{'A' * 20_000_000}.{signature}",
        "huge with room": f"{header}.{'A' * 16_000}.{signature}",
    }


NAMES = [
    "signed by another key", "other claims", "no signature", "alg none", "alg None", "no alg",
    "HS256 with the public key", "another audience", "no audience", "another issuer", "no issuer", "no subject",
    "no expiry", "an infinite expiry", "an expiry that is no number", "not yet valid", "issued in the future",
    "an unknown key", "a key id that is no text", "a critical header", "a key in the header",
    "a URL of keys in the header", "nested deeply", "not base64", "not UTF-8", "empty", "huge", "huge with room",
]  # fmt: skip


def test_every_forgery_is_tried(oidc: Provider) -> None:
    assert list(forgeries(oidc)) == NAMES


@pytest.mark.parametrize("name", NAMES)
async def test_a_forged_token_is_refused_with_one_reason(auth: Authenticator, oidc: Provider, name: str) -> None:
    await auth.identify(oidc.token())
    assert await refusal(auth, forgeries(oidc)[name]) == REFUSED


async def test_an_expired_token_is_told_so(
    auth: Authenticator, oidc: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())
    assert (await auth.identify(oidc.token(exp=now - 5))).id == "oidc:alice", "clocks may differ a little"
    assert "has expired" in await refusal(auth, oidc.token(exp=now - 60))
    text = oidc.token()
    caller = await auth.identify(text)
    monkeypatch.setattr("time.time", lambda: now + 700.0)
    assert not auth.still_valid(caller)
    assert "has expired" in await refusal(auth, text)


@pytest.mark.parametrize("subject", ["", "a\nb", "a\x00", "é", "x" * 256, "a\x7f"])
async def test_a_subject_that_would_not_fit_into_a_log_line_is_refused(
    auth: Authenticator, oidc: Provider, subject: str
) -> None:
    assert "subject is not a text" in await refusal(auth, oidc.token(sub=subject))


async def test_a_subject_cannot_be_the_id_of_another_token(oidc: Provider, tmp_path: Path) -> None:
    text = document(entry(token("alice")), oidc=oidc.config())
    auth = authenticator(write(tmp_path / "tokens.yaml", text))
    static, oidc_caller = await auth.identify(token("alice")), await auth.identify(oidc.token())
    assert (static.id, oidc_caller.id) == ("alice", "oidc:alice")
    assert auth.still_valid(static)
    assert auth.still_valid(oidc_caller)


async def test_only_so_many_callers_are_cached(
    auth: Authenticator, oidc: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "MAX_KNOWN", 3)
    for number in range(5):
        await auth.identify(oidc.token(sub=f"u{number}"))
    assert auth._oidc is not None
    assert [one.id for one in auth._oidc._known.values()] == ["oidc:u2", "oidc:u3", "oidc:u4"]
