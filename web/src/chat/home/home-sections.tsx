import "../../styles/home.css";

import { type AgentView, type ApprovalView, type ConversationView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { BellRing, Plus } from "lucide-react";

import { isReached as reached } from "../../api/reachability";
import { agentName, agents, inOrder, isGuide, listedAgentName } from "../../state/agents";
import { approvals, conversations } from "../../state/front-end";
import { minute } from "../../state/minute";
import { hrefOf } from "../../state/route";
import { AgentFace } from "../../ui/agent-face";
import { focusRequest } from "../../ui/focus-request";
import { requestLine } from "../../ui/request-line";
import { WithCode } from "../../ui/with-code";
import { useWords } from "../../words";
import { relativeTime } from "../../words/format";
import { useHomeWords } from "../../words/home";
import { useRequestWords } from "../../words/requests";

const MOST_CARDS = 6;
/** Beside so many cards there is no room for another one. */
const IN_A_ROW = 3;
const MOST_STARTERS = 2;
const MOST_RECENT = 6;
const MOST_REQUESTS = 4;

interface Props {
  agent: AgentView | undefined;
  onStart: (message: string, agent?: AgentView) => void;
}

/** Below the composer: what waits for the user, the other agents, and what they did last. */
export function HomeSections({ agent, onStart }: Props) {
  const words = useWords();
  const homeWords = useHomeWords();
  const all = useStore(agents);
  const isReached = useStore(reached);
  const others = inOrder(all).filter((it) => it.id !== agent?.id);
  const hasRoom = others.length < IN_A_ROW;
  const open = useStore(approvals.items);
  const { items, state } = useStore(conversations.state);
  const recent = items.slice(0, MOST_RECENT);
  return (
    <div className="home-sections">
      {open.length > 0 && (
        <section aria-labelledby="home-requests">
          <header>
            <h2 id="home-requests">{homeWords.requests}</h2>
          </header>
          <ul className="home-rows requests">
            {open.slice(0, MOST_REQUESTS).map((it) => (
              <RequestRow key={it.requestId} request={it} />
            ))}
          </ul>
        </section>
      )}
      {(isReached || all.length > 0) && (
        <section aria-labelledby="home-agents">
          <header>
            <h2 id="home-agents">{words.agents}</h2>
            <span>
              {!hasRoom && <a href={hrefOf({ name: "agent", id: "new" })}>{words.newAgent}</a>}
              <a href={hrefOf({ name: "agents" })}>{homeWords.allAgents}</a>
            </span>
          </header>
          <ul className="home-cards">
            {others.slice(0, MOST_CARDS).map((it) => (
              <AgentCard key={it.id} agent={it} onStart={onStart} />
            ))}
            {hasRoom && (
              <li className="home-card add">
                <a href={hrefOf({ name: "agent", id: "new" })}>
                  <Plus aria-hidden /> {words.newAgent}
                </a>
                <p>{homeWords.newAgentAbout}</p>
              </li>
            )}
          </ul>
        </section>
      )}
      {recent.length > 0 && (
        <section aria-labelledby="home-recent">
          <header>
            <h2 id="home-recent">{homeWords.recent}</h2>
          </header>
          <ul className="home-rows">
            {recent.map((it) => (
              <RecentRow key={it.id} conversation={it} />
            ))}
          </ul>
        </section>
      )}
      {state === "ready" && !items.length && (
        <p className="hint">
          {homeWords.before} <a href={hrefOf({ name: "import" })}>{homeWords.bring}</a>
        </p>
      )}
    </div>
  );
}

function AgentCard({ agent, onStart }: { agent: AgentView; onStart: Props["onStart"] }) {
  const words = useWords();
  const homeWords = useHomeWords();
  const isTour = isGuide(agent);
  const about = isTour ? words.guideDescription : agent.description || (agent.isDefault && homeWords.defaultAbout);
  const starters = isTour ? [words.guideIdeas[0]!, words.guideIdeas[3]!] : (agent.starters ?? []);
  return (
    <li className="home-card">
      <AgentFace agent={agent} />
      <a href={hrefOf({ name: "new", agentId: agent.isDefault ? null : agent.id })} dir="auto">
        {agent.name}
      </a>
      {about && <p dir="auto">{about}</p>}
      {starters.length > 0 && (
        <div className="starters">
          {starters.slice(0, MOST_STARTERS).map((it, index) => (
            <button key={it} type="button" dir="auto" onClick={() => onStart(it, agent)}>
              {isTour && !index ? words.takeTour : it}
            </button>
          ))}
        </div>
      )}
    </li>
  );
}

function RequestRow({ request }: { request: ApprovalView }) {
  const words = useWords();
  const requestWords = useRequestWords();
  const { items } = useStore(conversations.state);
  const all = useStore(agents);
  const { conversationId, requestId } = request;
  const conversation = items.find(({ id }) => id === conversationId);
  return (
    <li>
      <a href={hrefOf({ name: "conversation", id: conversationId })} onClick={() => focusRequest(requestId)}>
        <BellRing aria-hidden />
        <span className="title" dir="auto">
          <WithCode text={requestLine(requestWords, request, agentName(all, request.agentId))} />
        </span>
        <small dir="auto">{(conversation ?? { title: request.conversationTitle }).title || words.untitled}</small>
      </a>
    </li>
  );
}

function RecentRow({ conversation: { id, title, agentId, updatedAt } }: { conversation: ConversationView }) {
  const words = useWords();
  const all = useStore(agents);
  const now = useStore(minute);
  const agent = all.find((it) => it.id === agentId);
  return (
    <li>
      <a href={hrefOf({ name: "conversation", id })}>
        <AgentFace agent={agent ?? { id: agentId, name: "", isDefault: false }} />
        <span className="title" dir="auto">
          {title || words.untitled}
        </span>
        <small>
          {all.length > 0 && `${listedAgentName(all, agentId, words.deletedAgent)} · `}
          {relativeTime(updatedAt, words.locale, now) || words.justNow}
        </small>
      </a>
    </li>
  );
}
