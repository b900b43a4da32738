import "../../styles/approvals-panel.css";

import { type ApprovalView, type PartOf } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useEffect, useLayoutEffect, useRef, type RefObject } from "react";

import { useEscape } from "../../hooks/use-escape";
import { agentName, agents } from "../../state/agents";
import { approvals, conversations, outbox } from "../../state/front-end";
import { hrefOf } from "../../state/route";
import { focusRequest } from "../../ui/focus-request";
import { placePopover } from "../../ui/place-popover";
import { useWords } from "../../words";
import { MessageTime } from "../message-time";
import { Request, type RequestProps } from "./request";

interface Props {
  label: string;
  button: RefObject<HTMLButtonElement | null>;
  onClose: () => void;
}

/** All open requests: who asks, since when, and where; each can be decided on here. */
export function ApprovalsPanel({ label, button, onClose }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const open = useStore(approvals.items);
  useLayoutEffect(() => {
    place.current!.showPopover?.();
    place.current!.focus();
  }, []);
  useLayoutEffect(() => {
    placePopover(place.current!, button.current!);
    // The request with the focus was decided.
    if (document.activeElement === document.body) place.current!.focus();
  }, [open, button]);
  useEscape(true, () => {
    onClose();
    button.current?.focus();
  });
  useEffect(() => {
    const closing = new AbortController();
    const close = ({ target }: Event) => {
      const isOurs = target instanceof Node && (place.current?.contains(target) || button.current?.contains(target));
      if (!isOurs) onClose();
    };
    window.addEventListener("pointerdown", close, { capture: true, signal: closing.signal });
    window.addEventListener("resize", onClose, { signal: closing.signal });
    return () => closing.abort();
  }, [button, onClose]);
  return (
    <div
      ref={place}
      className="approvals-panel"
      role="dialog"
      aria-label={label}
      tabIndex={-1}
      popover="manual"
    >
      {open.map((it) => (
        <OpenRequest key={it.requestId} request={it} onLeave={onClose} />
      ))}
    </div>
  );
}

function OpenRequest({ request, onLeave }: { request: ApprovalView; onLeave: () => void }) {
  const words = useWords();
  const { items } = useStore(conversations.state);
  const all = useStore(agents);
  const { conversationId, requestId, turnId, createdAt, agentId } = request;
  const conversation = items.find(({ id }) => id === conversationId);
  const asker = agentName(all, agentId);
  return (
    <section>
      <p className="from">
        <a
          href={hrefOf({ name: "conversation", id: conversationId })}
          dir="auto"
          onClick={() => {
            onLeave();
            focusRequest(requestId);
          }}
        >
          {(conversation ?? { title: request.conversationTitle }).title || words.untitled}
        </a>
        <small>
          {asker && <span dir="auto">{asker} · </span>}
          <MessageTime at={createdAt} />
        </small>
      </p>
      <Request
        agentId={agentId}
        segment={segmentOf(request)}
        running
        onDecide={(id, body) => outbox.deliver({ kind: "answer", conversationId, turnId, requestId: id, body })}
      />
    </section>
  );
}

/** The request as its reply shows it. */
function segmentOf(request: ApprovalView): RequestProps["segment"] {
  const { kind, requestId, message, expiresAt, toolCallId = "", toolName = "", server = "", schema, url } = request;
  const range = { from: 0, to: 0 };
  const call: PartOf<"tool_call"> = {
    type: "tool_call",
    toolCallId,
    toolName,
    server,
    arguments: request.arguments ?? {},
    status: "running",
    result: null,
    durationMs: null,
    iteration: 0,
  };
  const asked = { requestId, message, expiresAt };
  if (kind === "question" || kind === "elicitation") {
    const question: PartOf<"question"> = { type: "question", ...asked, iteration: 0, schema, url };
    return { ...range, kind: "question", question, asker: kind === "elicitation" ? call : undefined };
  }
  if (kind === "client_tool") return { ...range, kind: "client_request", call: { ...call, clientRequest: asked } };
  return { ...range, kind: "approval", call: { ...call, approval: asked } };
}
