"""Conditions on labels and metadata: the values that each operator accepts, and invalid conditions."""

import pytest

from redsched.decide.conditions import condition
from redsched.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "passing", "failing"),
    [
        ("r4", ["r4"], ["r5", "R4", "r4 "]),
        ("Intel Xeon", ["Intel Xeon"], ["Intel"]),
        ("= 5", ["5", "6.5"], ["4.9", "x", "nan"]),
        (">= 5", ["5", "5.0", "1e3"], ["4", "", "five"]),
        (">=5", ["5"], ["4"]),
        ("<= 5", ["5", "-1"], ["5.1", "x"]),
        ("> 5", ["5.1"], ["5", "inf"]),
        ("< 5", ["4"], ["5", "x"]),
        ("== 5", ["5", "5.0"], ["6", "x"]),
        ("!= 5", ["6"], ["5.0", "x"]),
        ("s== 5", ["5"], ["5.0"]),
        ("s== Intel Xeon", ["Intel Xeon"], ["Intel"]),
        ("s== >= 5", [">= 5"], ["6"]),
        ("s!= 5", ["5.0"], ["5"]),
        ("s>= b", ["b", "c"], ["a"]),
        ("s<= b", ["a", "b"], ["c"]),
        ("s> b", ["ba"], ["b"]),
        ("s< b", ["az", "10"], ["b"]),
        ("<in> gcc", ["gcc", "gcc12", "my gcc"], ["gc"]),
        ("<or> a <or> b", ["a", "b"], ["c", "a b", ""]),
        ("<or> Intel Xeon <or> AMD", ["Intel Xeon", "AMD"], ["Intel"]),
        ("<all-in> aes mmx", ["aes,mmx", "mmx, sse, aes", "['aes', 'mmx']", '["mmx","aes"]'], ["aes", "aesmmx", ""]),
        ("<all-in> aes mmx", ["aes mmx", "sse mmx,aes"], ["vaes mmx"]),
        ("<like> i686/*/exe", ["i686/lxc/exe", "x/y/z, i686/lxc/exe"], ["i686/kvm/hvm,x86_64/lxc/exe", "i686", ""]),
        ("<like> a.c", ["a.c", "b,a.c"], ["abc", "a.cd"]),
        ("<range-in> [ 10 20 ]", ["10", "20", "15.5"], ["9", "21", "x"]),
        ("<range-in> ( 10 20 )", ["15"], ["10", "20"]),
        ("<range-in> [10 20)", ["10"], ["20"]),
    ],
)
def test_a_condition_lets_through_what_it_says(text: str, passing: list[str], failing: list[str]) -> None:
    matches = condition("label 'x'", text).matches
    assert [one for one in passing if not matches(one)] == []
    assert [one for one in failing if matches(one)] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">= five", "label 'x': >= compares numbers, and 'five' is not a number; for strings use s=="),
        ("> nan", "> compares numbers, and 'nan' is not a number"),
        ("< inf", "< compares numbers, and 'inf' is not a number"),
        (">=", "the operator '>=' has no value after it, as in '>= 5'"),
        ("s== ", "the operator 's==' has no value after it"),
        ("<or> a <or>", "an <or> has no value after it"),
        ("<range-in> 10 20", "'10 20' is not a range"),
        ("<range-in> [ 20 10 ]", "starts at 20, above its end 10"),
        ("<range-in> [ a 10 ]", "<range-in> compares numbers, and 'a' is not a number"),
    ],
)
def test_a_malformed_condition_is_an_error_that_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        condition("label 'x'", text)
    assert message in raised.value.detail
