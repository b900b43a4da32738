import { keyOf, type FeedbackBody, type LiveReply, type Message, type OutboxItem, type Thread } from "@threadkeep/client";
import { memo, useCallback } from "react";

import { BriefingCard } from "./briefing-card";
import { Reply } from "./reply/reply";
import type { Decide } from "./requests/use-decision";
import { UserMessage } from "./user-message";
import { VersionPicker } from "./version-picker";

/** What the user does with a message, beside reading it. None of it changes while a conversation is open. */
export interface MessageActions {
  onChoose: (siblingId: string, message: Message) => void;
  onEdit: (message: Message) => void;
  /** Missing where the agent has one conversation with each person. */
  onFork?: (message: Message) => void;
  onDetails: (turnId: string) => void;
}

interface Props extends MessageActions {
  agentId?: string;
  message: Message;
  live: LiveReply | null;
  isLast: boolean;
  /** Whether the user opened it. */
  isWanted: boolean;
  /** Whether another version of it is being written. */
  isEdited: boolean;
  /** Whether it is being written. */
  running: boolean;
  /** Whether the path cannot be changed now. */
  busy: boolean;
  thread: Thread;
  /** The user's message, as long as the server doesn't have it. */
  unsent?: OutboxItem;
}

/** One message of a conversation. */
export const ThreadMessage = memo(
  function ThreadMessage({ agentId, message, live, isLast, isWanted, isEdited, running, busy, thread, unsent, ...actions }: Props) {
    const { onChoose, onEdit, onFork, onDetails } = actions;
    const { siblings, turnId } = message;
    const decide: Decide = useCallback(
      async (requestId, body) => turnId !== null && thread.sending.decide(turnId, requestId, body),
      [thread, turnId],
    );
    const rate = useCallback((body: FeedbackBody) => thread.rate(message, body), [thread, message]);
    const [first] = message.parts;
    const picker = siblings && (
      <VersionPicker siblings={siblings} busy={busy} onChoose={(id) => onChoose(id, message)} />
    );
    const classes = ["entry", isLast && "last", isWanted && "wanted", isEdited && "edited"].filter(Boolean).join(" ");
    return (
      <div className={classes} data-key={keyOf(message)} tabIndex={isWanted ? -1 : undefined}>
        {first?.type === "card" ? (
          <>
            <BriefingCard card={first} />
            {picker && <div className="actions">{picker}</div>}
          </>
        ) : message.role === "user" ? (
          <UserMessage message={message} busy={busy} unsent={unsent} onEdit={() => onEdit(message)}>
            {picker}
          </UserMessage>
        ) : (
          <Reply
            agentId={agentId}
            message={message}
            live={live}
            isLast={isLast}
            running={running}
            busy={busy}
            onRegenerate={(model) => void thread.branches.regenerate(message, model)}
            onContinue={(text) => void thread.sending.send(text)}
            onDecide={decide}
            onFork={onFork && (() => onFork(message))}
            onDetails={onDetails}
            onRate={rate}
          >
            {picker}
          </Reply>
        )}
      </div>
    );
  },
  (before, after) =>
    before.agentId === after.agentId &&
    before.message === after.message &&
    before.live === after.live &&
    before.isLast === after.isLast &&
    before.isWanted === after.isWanted &&
    before.isEdited === after.isEdited &&
    before.running === after.running &&
    before.busy === after.busy &&
    before.unsent === after.unsent &&
    before.thread === after.thread &&
    !before.onFork === !after.onFork,
);
