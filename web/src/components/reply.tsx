import { Info, RefreshCw } from "lucide-react";
import { useCallback, useId, type ReactNode } from "react";

import { ROUTES, type MessageView } from "../api/schema";
import { Markdown } from "../markdown/markdown";
import { textOf, type LiveReply } from "../turn/fold";
import { useWords } from "../words";
import { CopyButton } from "./copy-button";
import { Files } from "./files";
import { IconButton } from "./icon-button";
import { toldProblem } from "./problem-bar";
import { Sources } from "./sources";
import { ThoughtProcess } from "./thought-process";
import { ToolCallCard } from "./tool-call-card";

interface Props {
  message: MessageView;
  live: LiveReply | null;
  isLast: boolean;
  running: boolean;
  onRegenerate: () => void;
  onContinue: (text: string) => void;
  onDetails: (turnId: string) => void;
  /** The choice of versions. */
  children?: ReactNode;
}

export function Reply({ message, live, isLast, running, onRegenerate, onContinue, onDetails, children }: Props) {
  const words = useWords();
  const place = useId();
  const text = textOf(message);
  const onSource = useCallback(
    (index: number) => document.getElementById(`${place}-source-${index}`)?.focus(),
    [place],
  );
  const { artifactIds, thoughtProcess, toolCalls, citations, turnId, error, status } = message;
  const notices = thoughtProcess.filter((it) => it.kind === "notice");
  const isEmpty = !text && !thoughtProcess.length;
  return (
    <article className="reply" aria-label={words.replied}>
      {thoughtProcess.length > 0 && (
        <ThoughtProcess steps={thoughtProcess} running={running && !text} thinking={live?.thinkingSince !== null && live !== null} />
      )}
      {toolCalls.map((call) => (
        <ToolCallCard key={call.toolCallId} call={call} progress={live?.progress[call.toolCallId]} />
      ))}
      {notices.map((it, index) => (
        <p key={index} className="notice" role="note">
          {it.detail}
        </p>
      ))}
      {running && isEmpty && (
        <p className="waiting" role="status">
          <span className="dots" aria-hidden>
            <i />
            <i />
            <i />
          </span>
          <span className="unseen">{words.waiting}</span>
        </p>
      )}
      {text && <Markdown text={text} live={running} sources={citations.length} onSource={onSource} />}
      {artifactIds.length > 0 && ROUTES.has("GET /api/artifacts/{artifact_id}") && <Files ids={artifactIds} />}
      {citations.length > 0 && !running && <Sources citations={citations} place={place} />}
      {status === "CANCELLED" && <p className="ending">{words.stopped}</p>}
      {error && status !== "OVERWRITTEN" && (
        <div className="failure" role="alert">
          <p>
            <strong>{words.failed}</strong> {toldProblem(words, error)}
          </p>
          {isLast && (
            <div className="choices">
              {text && error.code === "INTERRUPTED" && (
                <button type="button" onClick={() => onContinue(words.continueText)}>
                  {words.continue}
                </button>
              )}
              <button type="button" onClick={onRegenerate}>
                {words.retry}
              </button>
            </div>
          )}
        </div>
      )}
      {!running && (
        <div className="actions">
          {children}
          {text && <CopyButton text={text} />}
          {isLast && <IconButton icon={RefreshCw} label={words.regenerate} onClick={onRegenerate} />}
          {turnId && <IconButton icon={Info} label={words.details} onClick={() => onDetails(turnId)} />}
        </div>
      )}
    </article>
  );
}
