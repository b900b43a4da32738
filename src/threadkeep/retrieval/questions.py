"""What a question is about: its words without those that merely ask."""

import re

from threadkeep.search.terms import query_terms

_WORDS = """a an and any about are as at be been but by can could did do does for from had has have how i if
    in into is it its me my of on or our please shall should so tell than that the their them then there these
    they this those to us was we were what when where which who whom whose why will with would you your"""
_ENGLISH = frozenset(query_terms(_WORDS))
_CHINESE = re.compile(
    "请问|告诉我|帮我|什么是|是什么|为什么|什么|怎么样|怎么办|怎么|怎样|如何|哪些|哪个|哪里|多少|多久|是否|能否|可以|需要|"
    "应该|关于|一下|我们|你们|他们|这个|那个|吗|呢|吧|啊|的|了|是|在|我|你|有没有|有|几"
)


def asked_terms(query: str) -> list[str]:
    """The terms of a query without question words, unless it has no others."""
    about = [term for term in query_terms(_CHINESE.sub(" ", query)) if term not in _ENGLISH]
    return about or query_terms(query)
