import { type ToolCallPartView, type ToolProgress } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { memo } from "react";

import { LongText } from "../../ui/long-text";
import { useWords } from "../../words";
import { duration } from "../../words/format";
import { useRequestWords } from "../../words/requests";
import { outcomeOf } from "../requests/request-outcome";

interface Props {
  call: ToolCallPartView;
  progress: ToolProgress | undefined;
  /** Whether it waits for the user: for an approval, or for an answer. */
  isWaiting: boolean;
  /** Whether its details are shown from the start. */
  open: boolean;
}

/** A tool call: its name and what became of it; its arguments and its result on demand. */
export const ToolStep = memo(function ToolStep({ call, progress, isWaiting, open }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const { toolName, server, status, durationMs, error, approval } = call;
  return (
    <details
      className="tool"
      role="group"
      aria-label={words.toolCall(toolName)}
      data-status={isWaiting ? "waiting" : status}
      open={open}
    >
      <summary>
        <span className="name">{toolName}</span>
        <small>{server}</small>
        <span className="status">{isWaiting ? words.waitingForYou : (words.toolStatus[status] ?? status)}</span>
        {durationMs !== null && <small>{duration(durationMs)}</small>}
        {status === "running" && !isWaiting && (
          <progress
            max={progress?.total ?? undefined}
            value={progress?.total ? progress.progress : undefined}
            aria-label={words.toolStatus.running}
          />
        )}
        <ChevronRight aria-hidden className="fold" />
      </summary>
      {status === "running" && progress?.message && <p className="detail">{progress.message}</p>}
      <p className="label">{words.arguments}</p>
      <LongText text={readable(call.arguments)} />
      {approval && !isWaiting && (
        <>
          <p className="label">{outcomeOf(requestWords, approval.action, approval.scope)}</p>
          {approval.arguments && <LongText text={readable(approval.arguments)} />}
        </>
      )}
      {status !== "running" && (
        <>
          <p className="label">{words.result}</p>
          <LongText text={error ?? readable(call.result)} />
        </>
      )}
    </details>
  );
});

function readable(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
