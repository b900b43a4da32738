"""Storage of conversations and everything that belongs to them.

To a method that takes a user's id, other people's items don't exist. Every write is committed when its
method returns. Errors are StorageErrors.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from threadkeep.ports.agents import AgentStore
from threadkeep.ports.allowances import StoredBytes
from threadkeep.ports.approvals import ApprovalStore
from threadkeep.ports.branches import BranchStore
from threadkeep.ports.briefings import BriefingStore
from threadkeep.ports.compactions import CompactionStore
from threadkeep.ports.conversations import ConversationStore
from threadkeep.ports.documents import DocumentStore
from threadkeep.ports.executions import ExecutionStore
from threadkeep.ports.feedback import FeedbackStore
from threadkeep.ports.files import FileStore
from threadkeep.ports.gateways import GatewayStore
from threadkeep.ports.history import HistoryIndex
from threadkeep.ports.imports.runs import ImportRunStore
from threadkeep.ports.imports.whole_conversations import WholeConversationStore
from threadkeep.ports.keys import KeyStore
from threadkeep.ports.ledger import LedgerStore
from threadkeep.ports.mcp import SeenTools
from threadkeep.ports.memories import MemoryStore
from threadkeep.ports.messages import MessageStore
from threadkeep.ports.outside_ids import OutsideIds
from threadkeep.ports.payloads import PayloadStore
from threadkeep.ports.queue import QueueStore
from threadkeep.ports.receipts import ReceiptStore
from threadkeep.ports.repeats import RepeatStore
from threadkeep.ports.retriever import ChunkIndex
from threadkeep.ports.sharing.shares import ShareStore
from threadkeep.ports.turn_log import TurnLogStore
from threadkeep.ports.turns import TurnStore
from threadkeep.ports.users import UserStore


@dataclass(frozen=True, slots=True)
class Store:
    """Everything stored, one attribute per noun."""

    agents: AgentStore
    seen_tools: SeenTools
    conversations: ConversationStore
    messages: MessageStore
    branches: BranchStore
    turns: TurnStore
    queue: QueueStore
    log: TurnLogStore
    ledger: LedgerStore
    approvals: ApprovalStore
    compactions: CompactionStore
    receipts: ReceiptStore
    briefings: BriefingStore
    executions: ExecutionStore
    memories: MemoryStore
    keys: KeyStore
    feedback: FeedbackStore
    outside_ids: OutsideIds
    repeats: RepeatStore
    shares: ShareStore
    users: UserStore
    documents: DocumentStore
    chunks: ChunkIndex
    history: HistoryIndex
    payloads: PayloadStore
    files: FileStore
    gateways: GatewayStore
    whole_conversations: WholeConversationStore
    import_runs: ImportRunStore
    stored_bytes: StoredBytes
    key: bytes
    """Random bytes of this database, the same on every node; they sign the cursors of lists."""
    installation: str
    """An id of this database, which a restored backup keeps: what a browser kept for one is for no other."""
    ping: Callable[[], Awaitable[None]]
    """Raises StorageError if the database is unreachable."""
    close: Callable[[], Awaitable[None]]
    """Finishes accepted work and closes the database."""
