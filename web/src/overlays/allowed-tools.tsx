import "../styles/overlays.css";

import { type AgentView, type AllowedToolsView, type AllowedToolView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { X } from "lucide-react";
import { useCallback, useEffect, useRef } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { allowedToolsOf } from "../state/allowed-tools";
import { minute } from "../state/minute";
import { hrefOf } from "../state/route";
import { IconButton } from "../ui/icon-button";
import { describeProblem, toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { relativeTime } from "../words/format";
import { useRequestWords } from "../words/requests";

interface Props {
  conversationId: string;
  agent: AgentView | undefined;
}

/** The tools that run without asking in a conversation, and the way to take that back. */
export function AllowedTools({ conversationId, agent }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const now = useStore(minute);
  const path = `/api/conversations/${conversationId}/allowed-tools`;
  const { loaded, again } = useLoaded(useCallback((signal: AbortSignal) => api.get<AllowedToolsView>(path, {}, signal), [path]));
  useEffect(() => dialog.current?.showModal(), []);
  const askAgain = async ({ server, name }: AllowedToolView) => {
    try {
      await api.send("DELETE", `${path}?${new URLSearchParams({ server, tool: name }).toString()}`);
      await again();
      dialog.current?.querySelector<HTMLElement>("header button")?.focus(); // the button is gone
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const items = loaded.state === "ready" ? loaded.value.items : [];
  return (
    <dialog
      ref={dialog}
      className="overlay allowed-tools"
      aria-labelledby="allowed-tools"
      onClose={() => allowedToolsOf.set(null)}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <header>
        <h2 id="allowed-tools">{requestWords.allowedTitle}</h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      <p className="hint">
        {loaded.state === "loading"
          ? words.loading
          : loaded.state === "failed"
            ? describeProblem(words, loaded.problem)
            : items.length
              ? requestWords.allowedHint
              : requestWords.allowedNone}
      </p>
      <ul>
        {items.map((tool) => (
          <li key={`${tool.server}.${tool.name}`}>
            <p>
              <code>{tool.name}</code>
              <small>
                {tool.server} · {requestWords.allowedSince((relativeTime(tool.allowedAt, words.locale, now) || words.justNow).toLowerCase())}
              </small>
            </p>
            <button type="button" aria-label={requestWords.askAgainFor(tool.name)} onClick={() => void askAgain(tool)}>
              {requestWords.askAgain}
            </button>
          </li>
        ))}
      </ul>
      {agent?.settings && (
        <p className="more">
          <a href={hrefOf({ name: "agent", id: agent.id, tab: "permissions" })} onClick={() => allowedToolsOf.set(null)}>
            {requestWords.permissionsOf(agent.name)}
          </a>
        </p>
      )}
    </dialog>
  );
}
