"""Who of a provider's people may come in, and as whom."""

from dataclasses import replace

import pytest

from threadkeep.domain.sign_in.identity import Admission, Identity, SignInProblem

ANN = Identity(subject="1", name="Ann", email="ann@example.com", hosted_domain=None, groups=())


def admitted(admission: Admission, **more: object) -> str:
    """The user's id, or why there is none."""
    try:
        return admission.admit(replace(ANN, **more)).id
    except SignInProblem as exc:
        return exc.problem


def test_with_google_an_address_of_the_domain_is_not_enough():
    google = Admission(provider="g", allowed_domains=frozenset({"example.com"}), by_hosted_domain=True)
    assert admitted(google) == "not_allowed"
    assert admitted(google, hosted_domain="evil.example") == "not_allowed"
    assert admitted(google, hosted_domain="Example.com", email=None) == "g|1"


def test_both_rules_hold_if_both_are_given():
    both = Admission(
        provider="p", allowed_domains=frozenset({"example.com"}), allowed_groups=frozenset({"staff"})
    )
    assert admitted(both) == "not_allowed"
    assert admitted(both, groups=("staff",), email="ann@evil.example") == "not_allowed"
    assert admitted(both, groups=("staff",)) == "p|1"


def test_earlier_ids_are_nobody_elses():
    legacy = Admission(provider="p", legacy_ids=True, other_providers=("other",))
    assert admitted(legacy, subject="ann") == "ann"
    assert legacy.subject_of(legacy.admit(replace(ANN, subject="x|1")).id) == "x|1"
    for subject in ("local", "invited:ann", "other|1", "p|1", "", "x" * 256, "a\x00b"):
        assert admitted(legacy, subject=subject) == "invalid", subject


@pytest.mark.parametrize("groups", [("admins",), ("users", "admins")])
def test_admins_are_those_of_the_admin_group(groups: tuple[str, ...]):
    assert Admission(provider="p", admin_group="admins").admit(replace(ANN, groups=groups)).role == "admin"
    assert Admission(provider="p").admit(replace(ANN, groups=groups)).role == "user"
