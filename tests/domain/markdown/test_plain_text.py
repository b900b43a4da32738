"""Markdown as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.search.terms import terms


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("### The **lighthouse** keeper", "The lighthouse keeper"),
        ("**bold *and italic* again** and ~~gone~~", "bold and italic again and gone"),
        ("- **`remove_file`**: removes _files_\n- [x] done", "• remove_file: removes files\n• done"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("> a quote\n> > in a quote", "a quote\nin a quote"),
        (
            'See [the docs](https://example.org/a_b_c "t") and ![a pier](pier.png).',
            "See the docs and a pier.",
        ),
        ("| City | Sun |\n|---|:-:|\n| Oslo | **3** |", "City · Sun\nOslo · 3"),
        ("before\n\n---\n\nafter", "before\nafter"),
        (
            "```python\n# not a heading **x**\nprint(a[0](1))\n```\n\ndone",
            "# not a heading **x**\nprint(a[0](1))\ndone",
        ),
        ("2 * 3 * 4, snake_case_name, a\\*b\\*", "2 * 3 * 4, snake_case_name, a*b*"),
        ("# Returns #\n\nA customer\n======\n> ## C#", "Returns\nA customer\nC#"),
        ("Twice a day.[^1] [^moon]\n\n[^1]: The *moon*.", "Twice a day. \nThe moon."),
        ("`a[^1]` stays", "a[^1] stays"),
        ("Einstein: $E=mc^2$, and $a_1 * b_1 * c$.", "Einstein: E=mc^2, and a_1 * b_1 * c."),
        ("$$\n\\sum_i x_i\n$$\nor $$ x $$, \\( y \\), \\[z\\]", "\\sum_i x_i\nor x, y, z"),
        ("from $5 to $6, \\$7, US$8/US$9", "from $5 to $6, $7, US$8/US$9"),
        ("关于**违约金**的条款", "关于违约金的条款"),
    ],
)
def test_marks_are_gone_and_words_stay(markdown: str, text: str):
    assert plain_text(markdown) == text


@given(st.text("ab *_`~[]()!|-#>\\\n1.$^:=", max_size=80))
def test_nothing_but_marks_and_targets_is_lost(markdown: str):
    kept = plain_text(markdown)
    assert len(kept) <= len(markdown) + 3 * markdown.count("|")
    assert set("".join(terms(kept))) <= set("".join(terms(markdown)))
