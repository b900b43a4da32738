"""Read and search documents and files."""

from typing import Annotated

from msgspec import Meta

from threadkeep.domain.errors import SettingsError
from threadkeep.settings.storage import StorageSettings
from threadkeep.settings.values import Secret, split_url


class DocumentSettings(StorageSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How documents and files are read and searched."""

    embedding_url: Annotated[
        str | None,
        Meta(
            description="URL of an OpenAI-compatible server (…/v1) for semantic search of documents, "
            "instead of the bundled model; `off` turns semantic search off."
        ),
    ] = None
    embedding_api_key: Annotated[Secret, Meta(description="The embedding server's key.")] = None
    embedding_model: Annotated[str, Meta(description="The embedding server's model.")] = (
        "text-embedding-3-small"
    )
    file_workers: Annotated[
        int,
        Meta(
            ge=1,
            le=64,
            description="Maximum images, PDFs and Word documents of messages that a node prepares at once; "
            "users take turns. Each may take 1.3 GB of memory.",
        ),
    ] = 2
    max_upload_bytes: Annotated[
        int, Meta(ge=1024, description="Maximum size of a document upload, all files of a request together.")
    ] = 100 * 1024 * 1024

    def check_embedding(self) -> None:
        """Rejects what is not an address."""
        if self.embedding_url not in {None, "off"} and (
            split_url(self.embedding_url or "", "EMBEDDING_URL").scheme not in {"http", "https"}
        ):
            raise SettingsError("THREADKEEP_EMBEDDING_URL must be an http(s) URL or `off`.")
