"""Requests have the shape that the official clients' types give them, and another shape is found."""

import json
from collections.abc import Callable

import pytest

from tests.gateways.asking import MODEL
from tests.gateways.official_types import check_anthropic_type, check_openai_type, check_responses_type
from tests.gateways.test_requests import SHAPES
from tests.testing.test_provider_rules import NO_REQUESTS, Body, M, anthropic, drop, openai, put, responses
from threadkeep.gateways.anthropic import anthropic_body
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.openai import openai_body
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.gateways.responses import responses_body
from threadkeep.ports.gateway import ModelRequest


@pytest.mark.parametrize("request_", SHAPES)
def test_bodies_have_the_official_shape(request_: ModelRequest):
    check_anthropic_type(json.loads(encode(anthropic_body(request_, MODEL))))
    for quirks in (ProviderQuirks(), ProviderQuirks(takes_max_tokens=False)):
        check_openai_type(json.loads(encode(openai_body(request_, MODEL, quirks))))
    check_responses_type(json.loads(encode(responses_body(request_, MODEL))))


def test_valid_requests_have_the_official_shape():
    check_anthropic_type(anthropic())
    check_openai_type(openai())
    check_responses_type(responses())


@pytest.mark.parametrize("body", NO_REQUESTS)
@pytest.mark.parametrize("check", [check_anthropic_type, check_openai_type, check_responses_type])
def test_what_is_no_request_at_all_is_found(check: Callable[[object], None], body: object):
    with pytest.raises(AssertionError):
        check(body)


@pytest.mark.parametrize(
    "breach",
    [
        put("stream_options", value={}),
        put("max_tokens", value="10"),
        put("stream", value=False),
        drop("model"),
        put(M, 0, "content", value=3),
        put(M, 1, "content", 1, "type", value="texts"),
        put(M, 1, "content", 0, "cache_control", value={"type": "ephemeral"}),
        put(M, 2, "content", 0, "results", value=1),
        put("system", 0, "cache_control", value={"type": "for ever"}),
        put("tools", 0, "input_schema", value=[]),
    ],
)
def test_shape_that_is_not_anthropic_s_is_found(breach: Callable[[Body], object]):
    body = anthropic()
    breach(body)
    with pytest.raises(AssertionError, match="body"):
        check_anthropic_type(body)


@pytest.mark.parametrize(
    "breach",
    [
        put("prompt_cache", value="x"),
        put("prompt_cache_key", value=1),
        put("temperature", value=True),
        drop(M),
        put(M, 0, "role", value="narrator"),
        put(M, 2, "tool_calls", 0, "id", value=None),
        put(M, 2, "tool_calls", 0, "function", "arguments", value={}),
        drop(M, 3, "tool_call_id"),
        put("tools", 0, "function", "parameters", value="x"),
    ],
)
def test_shape_that_is_not_openai_s_is_found(breach: Callable[[Body], object]):
    body = openai()
    breach(body)
    with pytest.raises(AssertionError, match="body"):
        check_openai_type(body)


@pytest.mark.parametrize(
    "breach",
    [
        put("messages", value=[]),
        put("prompt_cache_key", value=1),
        put("include", value=["everything"]),
        put("input", 0, "role", value="narrator"),
        put("input", 1, "summary", 0, "type", value="text"),
        drop("input", 1, "summary"),
        put("input", 2, "arguments", value={}),
        drop("input", 3, "output"),
        put("input", 4, "content", 1, "detail", value="huge"),
        drop("tools", 0, "strict"),
    ],
)
def test_shape_that_is_not_of_the_responses_api_is_found(breach: Callable[[Body], object]):
    body = responses()
    breach(body)
    with pytest.raises(AssertionError, match="body"):
        check_responses_type(body)
