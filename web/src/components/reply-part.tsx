import { Markdown } from "../markdown/markdown";
import { type Progress } from "../turn/fold";
import { type Segment } from "../turn/segments";
import { Files } from "./files";
import { Steps } from "./steps";
import { ToolCallCard } from "./tool-call-card";

interface Props {
  segment: Segment;
  /** Whether the model is writing it. */
  growing: boolean;
  progress: Record<string, Progress> | undefined;
  /** How many sources a mark `[1]` may name. */
  sources: number;
  onSource: (index: number) => void;
}

/** One piece of a reply, where it arrived. */
export function ReplyPart({ segment, growing, progress, sources, onSource }: Props) {
  switch (segment.kind) {
    case "text":
      return <Markdown text={segment.text} live={growing} sources={sources} onSource={onSource} />;
    case "steps":
      return <Steps steps={segment.steps} thinking={growing} />;
    case "tool":
      return <ToolCallCard call={segment.call} progress={progress?.[segment.call.toolCallId]} />;
    case "files":
      return <Files ids={segment.ids} />;
    case "notice":
      return (
        <p className="notice" role="note">
          {segment.message}
        </p>
      );
  }
}
