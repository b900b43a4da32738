"""Documents and files: what reads, embeds and searches them."""

from threadkeep.clock import Clock, system_clock
from threadkeep.domain.caps import OperatorCaps
from threadkeep.domain.data_folder import UPLOADS
from threadkeep.fair_slots import FairSlots
from threadkeep.files.image_preparer import ProcessImagePreparer
from threadkeep.files.pdf_inspector import ProcessPdfInspector
from threadkeep.ports.allowances import Allowances
from threadkeep.ports.embedder import Embedder
from threadkeep.retrieval.embed import EndpointEmbedder, bundled_embedder
from threadkeep.retrieval.extractor import ProcessExtractor
from threadkeep.services.file_intake import FileIntake
from threadkeep.services.files import Files
from threadkeep.settings import Settings
from threadkeep.storage.store import Store


def build_embedder(settings: Settings) -> Embedder | None:
    """What embeds documents for search by meaning; None if the small model isn't installed."""
    if settings.embedding_url == "off":
        return None
    if settings.embedding_url:
        return EndpointEmbedder(settings.embedding_url, settings.embedding_api_key, settings.embedding_model)
    return bundled_embedder()


def file_intake(settings: Settings, clock: Clock = system_clock) -> FileIntake:
    """What prepares files for messages."""
    return FileIntake(
        ProcessImagePreparer(),
        ProcessPdfInspector(),
        ProcessExtractor(),
        settings.data / UPLOADS,
        clock,
        FairSlots(settings.file_workers),
    )


def build_files(
    settings: Settings, store: Store, allowances: Allowances, clock: Clock, caps: OperatorCaps
) -> Files:
    """The files of messages."""
    return Files(
        store,
        file_intake(settings, clock),
        allowances,
        clock,
        caps,
        most_unsent_bytes=settings.max_unsent_file_bytes,
        ttl_hours=settings.file_ttl_hours,
    )
