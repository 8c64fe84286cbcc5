"""`scripts/count-changes` can still make each of its changes in this checkout. The script itself runs their tests."""

import pytest

from tests.support.changes import CHANGES, ROOT, Change, Edit, inserted


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_each_file_has_the_line_before_which_a_change_adds_text(change: Change) -> None:
    assert (ROOT / change.page).exists()
    for one in change.edits:
        path = ROOT / one.path
        assert one.text in inserted(path.read_text(), one) if one.before else not path.exists()


def test_text_goes_before_the_first_such_line() -> None:
    assert inserted("a\nb\nb c\n", Edit("x", "b", "new\n")) == "a\nnew\nb\nb c\n"
    with pytest.raises(LookupError, match="x has no line that begins with 'd'"):
        inserted("a\n", Edit("x", "d", ""))
