"""All services, as `http` and the protocols are given them."""

import asyncio
from dataclasses import dataclass

from threadkeep.domain.sign_in.session import SignInRules
from threadkeep.imports.runs import ImportRuns
from threadkeep.loops import Loops
from threadkeep.metrics import Metrics
from threadkeep.ports.models import Models
from threadkeep.runtime.spending import Spending
from threadkeep.runtime.user_events import UserEvents
from threadkeep.services.added_messages import AddedMessages
from threadkeep.services.agent_copies import AgentCopies
from threadkeep.services.agents import Agents
from threadkeep.services.approvals import Approvals
from threadkeep.services.branches.branches import Branches
from threadkeep.services.briefings import Briefings
from threadkeep.services.compactions import Compactions
from threadkeep.services.completions.completions import Completions
from threadkeep.services.completions.run_replies import RunReplies
from threadkeep.services.conversations import Conversations
from threadkeep.services.creations import Creations
from threadkeep.services.documents import Documents
from threadkeep.services.executions import Executions
from threadkeep.services.feedback import Feedbacks
from threadkeep.services.files import Files
from threadkeep.services.gateways import Gateways
from threadkeep.services.history import History
from threadkeep.services.keys import Keys
from threadkeep.services.live_gateways import LiveGateways
from threadkeep.services.mcp_servers import McpServers
from threadkeep.services.memories import Memories
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.outside import Outside
from threadkeep.services.prompts import Prompts
from threadkeep.services.queue import Queue
from threadkeep.services.receipts import Receipts
from threadkeep.services.replies.code_checks import CodeChecks
from threadkeep.services.replies.steps import Steps
from threadkeep.services.reports import Reports
from threadkeep.services.reruns import Reruns
from threadkeep.services.running_turns import RunningTurns
from threadkeep.services.sending import Sending
from threadkeep.services.sharing.shares import Shares
from threadkeep.services.sign_in.attempts import Attempts
from threadkeep.services.sign_in.invitations import Invitations
from threadkeep.services.sign_in.known_users import KnownUsers
from threadkeep.services.sign_in.local_data import LocalData
from threadkeep.services.sign_in.provider_sign_ins import ProviderSignIns
from threadkeep.services.sign_in.sessions import Sessions
from threadkeep.services.turns import Turns
from threadkeep.services.usage import Usages
from threadkeep.services.users import Users
from threadkeep.services.workers import Workers
from threadkeep.storage.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases, ready to be called."""

    agents: Agents
    agent_copies: AgentCopies
    mcp_servers: McpServers
    conversations: Conversations
    creations: Creations
    documents: Documents
    files: Files
    gateways: Gateways
    live_gateways: LiveGateways
    history: History
    turns: Turns
    sending: Sending
    approvals: Approvals
    queue: Queue
    branches: Branches
    outside: Outside
    added_messages: AddedMessages
    shares: Shares
    running_turns: RunningTurns
    prompts: Prompts
    executions: Executions
    compactions: Compactions
    completions: Completions
    run_replies: RunReplies
    briefings: Briefings
    import_runs: ImportRuns
    receipts: Receipts
    steps: Steps
    code_checks: CodeChecks
    feedback: Feedbacks
    reruns: Reruns
    memories: Memories
    reports: Reports
    usages: Usages
    spending: Spending
    users: Users
    workers: Workers
    keys: Keys
    sessions: Sessions
    invitations: Invitations
    attempts: Attempts
    known_users: KnownUsers
    local_data: LocalData
    provider_sign_ins: ProviderSignIns
    begun_sign_ins: Attempts
    sign_in_rules: SignInRules
    user_events: UserEvents
    metrics: Metrics
    loops: Loops
    store: Store
    models: Models
    choice: ModelChoice

    async def drain(self, grace_s: float) -> None:
        """Starts no more replies: hands off running turns and ends what can't be, within a grace period."""
        await asyncio.gather(self.turns.drain(grace_s), self.completions.drain(grace_s))
