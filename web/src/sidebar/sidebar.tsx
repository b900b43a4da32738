import { type MeView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Bot, Inbox, PanelLeft, SquarePen, X } from "lucide-react";
import { useEffect, useRef } from "react";

import { useEscape } from "../hooks/use-escape";
import { briefings } from "../state/briefings";
import { COMMAND } from "../state/overlay";
import { go, hrefOf, route } from "../state/route";
import { IconButton } from "../ui/icon-button";
import { Logo } from "../ui/logo";
import { useWords } from "../words";
import { ConversationList } from "./conversation-list";
import { ProfileMenu } from "./profile-menu";

interface Props {
  me: MeView;
  open: boolean;
  onClose: () => void;
  onCollapse: () => void;
}

export function Sidebar({ me, open, onClose, onCollapse }: Props) {
  const words = useWords();
  const at = useStore(route);
  const unread = (useStore(briefings) ?? []).filter((it) => !it.readAt).length;
  const side = useRef<HTMLElement>(null);
  useEscape(open, onClose);
  // On a narrow screen it covers the page, so it takes the focus.
  useEffect(() => {
    if (!open) return;
    side.current?.querySelector<HTMLElement>("button.new")?.focus();
    const shown = side.current;
    return () => {
      if (shown?.contains(document.activeElement)) document.querySelector<HTMLElement>(".top-bar .narrow-only")?.focus();
    };
  }, [open]);
  return (
    <>
      <div className="shade" onClick={onClose} aria-hidden />
      <aside ref={side} className="sidebar" data-open={open}>
        <div className="brand">
          <a href="#/" className="name">
            <Logo /> Threadkeep
          </a>
          <span className="wide-only">
            <IconButton icon={PanelLeft} label={`${words.hideSidebar} (${COMMAND} B)`} onClick={onCollapse} />
          </span>
          <span className="narrow-only">
            <IconButton icon={X} label={words.closeMenu} onClick={onClose} />
          </span>
        </div>
        <button
          type="button"
          className="new"
          onClick={() => {
            go({ name: "new", agentId: at.name === "new" ? at.agentId : null });
            onClose();
            setTimeout(() => document.getElementById("message")?.focus()); // when nothing covers it any more
          }}
        >
          <SquarePen aria-hidden /> {words.newConversation}
        </button>
        <ConversationList openId={at.name === "conversation" ? at.id : null} />
        <div className="foot">
          <a className="row" href={hrefOf({ name: "agents" })} aria-current={at.name === "agents" ? "page" : undefined}>
            <Bot aria-hidden /> {words.agents}
          </a>
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
          <ProfileMenu me={me} />
        </div>
      </aside>
    </>
  );
}
