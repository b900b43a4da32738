"""Whether Threadkeep is completely installed."""

from collections.abc import Iterator
from importlib.util import find_spec

from threadkeep.doctor.finding import Finding, Verdict
from threadkeep.extras import adding
from threadkeep.http.page import FOLDER
from threadkeep.settings import PREFIX, Settings
from threadkeep.weights import EMBEDDING, weights_folder

_EXTRAS = {
    "documents": (
        "PDF and DOCX documents, and semantic search",
        ("numpy", "pypdfium2", "docx", "tokenizers"),
    ),
    "local": ("The demonstration model", ("xllamacpp",)),
    "postgres": ("PostgreSQL", ("psycopg", "psycopg_pool")),
}


def check_page() -> Finding:
    """Whether the page has been built."""
    if (FOLDER / "index.html").is_file():
        return Finding("page", "ok", "Built.")
    advice = "In a clone, run: python scripts/page.py build. The wheel includes it."
    return Finding("page", "warning", "Not built; the server offers only the API.", advice)


def check_extras(settings: Settings) -> Iterator[Finding]:
    """Whether the libraries that these settings need are installed."""
    needed = {
        "documents": True,
        "postgres": not settings.on_sqlite,
        "local": settings.gateway == "local",
    }
    for extra, (what, modules) in _EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        if not missing:
            yield Finding("extras", "ok", f"{what}: installed.")
        elif not needed[extra]:
            yield Finding("extras", "ok", f"{what}: not installed, and not needed.")
        else:
            # Without it, other documents are still read and found by their words.
            verdict: Verdict = "warning" if extra == "documents" else "problem"
            message = f"{what}: not installed ({', '.join(missing)})."
            yield Finding("extras", verdict, message, adding(extra))
    if settings.embedding_url is None and weights_folder(EMBEDDING.package) is None:
        message = "The model for semantic search isn't installed; documents are searched by keyword only."
        advice = f"Run threadkeep demo, or set {PREFIX}EMBEDDING_URL (`off` turns semantic search off)."
        yield Finding("extras", "warning", message, advice)
