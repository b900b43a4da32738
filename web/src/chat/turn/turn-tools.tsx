import { waitingCalls, type Part, type PartOf, type ToolProgress } from "@threadkeep/client";

import { previewsByCall } from "../../turn/previews";
import { useTurnWords } from "../../words/turn";
import { ToolStep } from "../reply/tool-step";

interface Props {
  parts: readonly Part[];
  progress: Record<string, ToolProgress>;
}

/** What each tool received and returned. */
export function TurnTools({ parts, progress }: Props) {
  const turnWords = useTurnWords();
  const calls = parts.filter((it): it is PartOf<"tool_call"> => it.type === "tool_call");
  const waiting = waitingCalls(parts);
  const previews = previewsByCall(calls);
  if (!calls.length) return null;
  return (
    <>
      <h3>{turnWords.toolCalls}</h3>
      <ol className="tool-calls">
        {calls.map((call, index) => (
          // A call that was made again has the id of the one before.
          <li key={index}>
            <ToolStep
              call={call}
              preview={previews.get(call) ?? ""}
              progress={progress[call.toolCallId]}
              isWaiting={waiting.has(call.toolCallId)}
              open={calls.length === 1}
            />
          </li>
        ))}
      </ol>
    </>
  );
}
