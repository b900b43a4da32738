import { type BriefingView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useEffect } from "react";

import { api } from "../api/api";
import { TopBar } from "../chat/top-bar";
import { agentName, agents } from "../state/agents";
import { briefings, refreshBriefings } from "../state/briefings";
import { conversations } from "../state/front-end";
import { go } from "../state/route";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { dateTime } from "../words/format";

export function BriefingsPage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const all = useStore(briefings);
  useEffect(() => void refreshBriefings(), []);
  return (
    <div className="page">
      <TopBar title={words.briefings} onMenu={onMenu} />
      <div className="content">
        {all === null && <p className="hint">{words.loading}</p>}
        {all?.length === 0 && (
          <>
            <h2>{words.noBriefings}</h2>
            <p className="hint">{words.briefingsHint}</p>
          </>
        )}
        <ul className="cards">
          {all?.map((it) => (
            <Briefing key={it.id} briefing={it} />
          ))}
        </ul>
      </div>
    </div>
  );
}

function Briefing({ briefing }: { briefing: BriefingView }) {
  const words = useWords();
  const all = useStore(agents);
  const { id, title, summary, priority, createdAt, readAt } = briefing;
  const act = async (work: () => Promise<void>) => {
    try {
      await work();
      await refreshBriefings();
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const talk = () =>
    act(async () => {
      const path = `/api/briefings/${id}/actions/start_conversation`;
      const { conversationId } = await api.send<{ conversationId: string }>("POST", path);
      void conversations.refresh();
      go({ name: "conversation", id: conversationId });
    });
  return (
    <li className="card briefing" data-priority={priority} data-unread={!readAt}>
      <p className="about">
        <span className="priority">{priority}</span> {agentName(all, briefing.agentId)} ·{" "}
        {dateTime(createdAt, words.locale)}
        {!readAt && <strong className="badge">{words.unread}</strong>}
      </p>
      <h2 dir="auto">{title}</h2>
      <p dir="auto">{summary}</p>
      <div className="choices">
        <button type="button" className="primary" onClick={() => void talk()}>
          {words.continueBriefing}
        </button>
        {!readAt && (
          <button type="button" onClick={() => void act(() => api.send("POST", `/api/briefings/${id}/read`))}>
            {words.markRead}
          </button>
        )}
        <button type="button" className="danger" onClick={() => void act(() => api.send("DELETE", `/api/briefings/${id}`))}>
          {words.remove}
        </button>
      </div>
    </li>
  );
}
