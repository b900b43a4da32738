"""The JSON in the text of a reply."""


def json_in(text: str) -> str:
    """The JSON of a reply, which models put between fences."""
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].removesuffix("```")
    return bare.strip()
