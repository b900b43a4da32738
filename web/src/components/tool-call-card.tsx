import { ChevronRight, Wrench } from "lucide-react";
import { memo } from "react";

import { type ToolCallPartView } from "../api/schema";
import { Chart } from "../chart/chart";
import { type Progress } from "../turn/fold";
import { useWords } from "../words";
import { duration } from "../words/format";
import { Files } from "./files";
import { LongText } from "./long-text";

interface Props {
  call: ToolCallPartView;
  progress: Progress | undefined;
}

/** A tool call with what it drew and the files that it gave. */
export const ToolCallCard = memo(function ToolCallCard({ call, progress }: Props) {
  const { chartData, artifactIds } = call;
  return (
    <>
      <Call call={call} progress={progress} />
      {chartData != null && <Chart data={chartData} />}
      {artifactIds !== undefined && artifactIds.length > 0 && <Files ids={artifactIds} />}
    </>
  );
});

function Call({ call, progress }: Props) {
  const words = useWords();
  const { toolName, server, status, durationMs, error } = call;
  return (
    <details className="card tool" role="group" aria-label={words.toolCall(toolName)} data-status={status}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <Wrench aria-hidden />
        <span className="name">{toolName}</span>
        <small>{server}</small>
        <span className="status">{words.toolStatus[status]}</span>
        {durationMs !== null && <small>{duration(durationMs)}</small>}
        {status === "running" && (
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
