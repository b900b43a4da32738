import { ChevronRight, Wrench } from "lucide-react";
import { memo } from "react";

import { type ToolCallPartView } from "../api/schema";
import { Chart } from "../chart/chart";
import { type Progress } from "../turn/fold";
import { useWords } from "../words";
import { duration } from "../words/format";
import { CallApproval } from "./call-approval";
import { Files } from "./files";
import { LongText } from "./long-text";
import { type Answer } from "./use-answer";

interface CallProps {
  call: ToolCallPartView;
  progress: Progress | undefined;
  /** Whether it waits for the user: for leave, or for an answer. */
  isWaiting: boolean;
}

interface Props extends CallProps {
  /** Whether its turn runs or waits. */
  running: boolean;
  onAnswer: Answer;
}

/** A tool call with what its user was asked, what it drew and the files that it gave. */
export const ToolCallCard = memo(function ToolCallCard({ call, progress, isWaiting, running, onAnswer }: Props) {
  const { chartData, artifactIds, approval, status } = call;
  const isOpen = running && status === "running" && approval !== undefined && approval.action === undefined;
  return (
    <>
      <div className={isOpen ? "call asks" : "call"}>
        <Call call={call} progress={progress} isWaiting={isWaiting} />
        {approval && <CallApproval call={call} approval={approval} isOpen={isOpen} onAnswer={onAnswer} />}
      </div>
      {chartData != null && <Chart data={chartData} />}
      {artifactIds !== undefined && artifactIds.length > 0 && <Files ids={artifactIds} />}
    </>
  );
});

function Call({ call, progress, isWaiting }: CallProps) {
  const words = useWords();
  const { toolName, server, status, durationMs, error } = call;
  return (
    <details className="card tool" role="group" aria-label={words.toolCall(toolName)} data-status={isWaiting ? "waiting" : status}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <Wrench aria-hidden />
        <span className="name">{toolName}</span>
        <small>{server}</small>
        <span className="status">{isWaiting ? words.waitingForYou : words.toolStatus[status]}</span>
        {durationMs !== null && <small>{duration(durationMs)}</small>}
        {status === "running" && !isWaiting && (
          <progress
            max={progress?.total ?? undefined}
            value={progress?.total ? progress.progress : undefined}
            aria-label={words.toolStatus.running}
          />
        )}
      </summary>
      <p className="label">{words.arguments}</p>
      <LongText text={readable(call.arguments)} />
      {status !== "running" && (
        <>
          <p className="label">{words.result}</p>
          <LongText text={error ?? readable(call.result)} />
        </>
      )}
      {status === "running" && progress?.message && <p className="detail">{progress.message}</p>}
    </details>
  );
}

function readable(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
