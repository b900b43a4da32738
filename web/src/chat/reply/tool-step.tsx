import "../../styles/tool-step.css";

import { type ToolCallPartView, type ToolProgress } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { memo } from "react";

import { decisionOn, progressOf } from "../../turn/activity";
import { LongText } from "../../ui/long-text";
import { useWords } from "../../words";
import { useRequestWords } from "../../words/requests";
import { capitalized, duration } from "../../words/format";

interface Props {
  call: ToolCallPartView;
  /** What sets it apart from other calls of its tool. */
  preview: string;
  progress: ToolProgress | undefined;
  /** Whether it waits for the user: for an approval, or for an answer. */
  isWaiting: boolean;
  /** Whether its details are shown from the start. */
  open: boolean;
}

/** A tool call in one line: its name, what it is about, and what became of it; its arguments and its result on demand. */
export const ToolStep = memo(function ToolStep({ call, preview, progress, isWaiting, open }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const { toolName, server, status, durationMs, error, approval } = call;
  const isRunning = status === "running" && !isWaiting;
  const decision = isWaiting ? "" : decisionOn(words, call);
  return (
    <details
      className="tool"
      role="group"
      aria-label={requestWords.toolCall(toolName)}
      data-status={isWaiting ? "waiting" : status}
      open={open}
    >
      <summary>
        <code className="name">{toolName}</code>
        {preview && <span className="gist">{preview}</span>}
        <span className="facts">
          {server && <small>{server}</small>}
          <small className="status">{isWaiting ? words.waitingForYou : (words.toolStatus[status] ?? status)}</small>
          {isRunning && progress?.total ? <progress max={progress.total} value={progress.progress} aria-label={words.toolStatus.running} /> : null}
          {isRunning && progressOf(words, progress) && <small>{progressOf(words, progress)}</small>}
          {durationMs !== null && <small>{duration(durationMs)}</small>}
          <ChevronRight aria-hidden className="fold" />
        </span>
      </summary>
      <p className="label">{requestWords.arguments}</p>
      <LongText text={readable(call.arguments)} />
      {decision && <p className="label">{capitalized(decision)}</p>}
      {approval?.arguments && <LongText text={readable(approval.arguments)} />}
      {status !== "running" && (
        <>
          <p className="label">{requestWords.result}</p>
          <LongText text={error ?? readable(call.result)} />
        </>
      )}
    </details>
  );
});

function readable(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
