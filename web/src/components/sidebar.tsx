import { BarChart3, Inbox, LogOut, Settings, SquarePen, X } from "lucide-react";
import { useEffect, useRef } from "react";

import { token } from "../api/client";
import { type MeView } from "../api/schema";
import { agents } from "../state/agents";
import { briefings } from "../state/briefings";
import { conversations } from "../state/conversations";
import { go, hrefOf, route } from "../state/route";
import { logOut } from "../state/session";
import { useStore } from "../state/store";
import { useWords } from "../words";
import { Appearance } from "./appearance";
import { ConversationList } from "./conversation-list";
import { Mark } from "./mark";

interface Props {
  me: MeView;
  open: boolean;
  onClose: () => void;
}

export function Sidebar({ me, open, onClose }: Props) {
  const words = useWords();
  const at = useStore(route);
  const all = useStore(agents);
  const { items } = useStore(conversations);
  const unread = (useStore(briefings) ?? []).filter((it) => !it.readAt).length;
  const signedIn = useStore(token) !== null;
  // The settings are those of the agent that one talks to.
  const openAgent =
    at.name === "conversation"
      ? items.find((it) => it.id === at.id)?.agentId
      : at.name === "new"
        ? at.agentId
        : at.name === "agent"
          ? at.id
          : null;
  const agentId = openAgent ?? all[0]?.id ?? null;
  const side = useRef<HTMLElement>(null);
  // On a narrow screen it covers the page: the keyboard goes where the eye is.
  useEffect(() => {
    if (!open) return;
    const closeOnEscape = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    side.current?.querySelector<HTMLElement>("button.new")?.focus();
    window.addEventListener("keydown", closeOnEscape);
    return () => window.removeEventListener("keydown", closeOnEscape);
  }, [open, onClose]);
  return (
    <>
      <div className="shade" onClick={onClose} aria-hidden />
      <aside ref={side} className="sidebar" data-open={open}>
        <div className="brand">
          <a href="#/" className="name">
            <Mark /> Threadkeep
          </a>
          <button type="button" className="icon narrow-only" onClick={onClose} aria-label={words.closeMenu}>
            <X aria-hidden />
          </button>
        </div>
        <button
          type="button"
          className="new"
          onClick={() => {
            go({ name: "new", agentId: at.name === "new" ? at.agentId : null });
            onClose();
            document.getElementById("message")?.focus();
          }}
        >
          <SquarePen aria-hidden /> {words.newConversation}
        </button>
        <ConversationList openId={at.name === "conversation" ? at.id : null} />
        <div className="foot">
          <div className="counted">
            <a
              className="row"
              href={hrefOf({ name: "briefings" })}
              aria-describedby={unread ? "unread" : undefined}
              aria-current={at.name === "briefings" ? "page" : undefined}
            >
              <Inbox aria-hidden /> {words.briefings}
            </a>
            {unread > 0 && (
              <span id="unread" className="count" aria-label={words.unreadCount(unread)} role="img">
                {unread}
              </span>
            )}
          </div>
          <a className="row" href={hrefOf({ name: "usage" })} aria-current={at.name === "usage" ? "page" : undefined}>
            <BarChart3 aria-hidden /> {words.usage}
          </a>
          <button
            type="button"
            className="row"
            disabled={!agentId}
            onClick={() => agentId && go({ name: "agent", id: agentId })}
          >
            <Settings aria-hidden /> {words.settings}
          </button>
          {signedIn && (
            <button type="button" className="row" onClick={logOut} title={words.signedInAs(me.id)}>
              <LogOut aria-hidden /> {words.logOut} <small>{me.id}</small>
            </button>
          )}
          <Appearance />
        </div>
      </aside>
    </>
  );
}
