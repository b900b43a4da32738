import { Markdown } from "../markdown/markdown";
import { type Progress } from "../turn/fold";
import { type Segment } from "../turn/segments";
import { useWords } from "../words";
import { Files } from "./files";
import { MessageFiles } from "./message-files";
import { QuestionCard } from "./question-card";
import { Steps } from "./steps";
import { Superseded } from "./superseded";
import { ToolCallCard } from "./tool-call-card";
import { type Answer } from "./use-answer";

interface Props {
  segment: Segment;
  /** Whether the model is writing it. */
  growing: boolean;
  /** Whether its turn runs or waits: what it asks can be answered. */
  running: boolean;
  /** The calls that wait for the user. */
  waiting: ReadonlySet<string>;
  progress: Record<string, Progress> | undefined;
  /** How many sources a mark `[1]` may name. */
  sources: number;
  onSource: (index: number) => void;
  onAnswer: Answer;
}

/** One piece of a reply, where it arrived. */
export function ReplyPart({ segment, ...props }: Props) {
  const { growing, running, waiting, progress, sources, onSource, onAnswer } = props;
  const words = useWords();
  switch (segment.kind) {
    case "text":
      return <Markdown text={segment.text} live={growing} sources={sources} onSource={onSource} />;
    case "steps":
      return <Steps steps={segment.steps} thinking={growing} />;
    case "tool":
      return (
        <ToolCallCard
          call={segment.call}
          progress={progress?.[segment.call.toolCallId]}
          isWaiting={running && waiting.has(segment.call.toolCallId)}
          running={running}
          onAnswer={onAnswer}
        />
      );
    case "question":
      return (
        <QuestionCard
          question={segment.question}
          isOpen={running && segment.question.answer === undefined}
          onAnswer={onAnswer}
        />
      );
    case "said":
      return (
        <div className="said" role="note" aria-label={words.youSaid}>
          <div className="bubble" dir="auto">
            {segment.text}
          </div>
        </div>
      );
    case "superseded":
      return (
        <Superseded>
          {segment.segments.map((it) => (
            <ReplyPart key={it.from} {...props} segment={it} growing={false} running={false} />
          ))}
        </Superseded>
      );
    case "files":
      return <Files ids={segment.ids} />;
    case "images":
      return <MessageFiles files={segment.images} />;
    case "notice":
      return (
        <p className="notice" role="note">
          {segment.message}
        </p>
      );
  }
}
