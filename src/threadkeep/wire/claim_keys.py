"""Keys of what programs claim, as journals have them: `scope/kind:name/hash of what is asked/number`."""


def describe_key(key: str) -> str:
    """A claim for its program's author: its scope and name, and which of the same it is."""
    scope, kind, _, number = key.rsplit("/", 3)
    name = kind.partition(":")[2] or kind
    name = f"{scope}/{name}" if scope else name
    return name if number == "1" else f"{name} ({number})"
