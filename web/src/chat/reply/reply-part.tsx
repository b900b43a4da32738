import { type ToolProgress } from "@threadkeep/client";

import { Chart } from "../../chart/chart";
import { Markdown } from "../../markdown/markdown";
import { segmentKey, type Segment } from "../../turn/segments";
import { useWords } from "../../words";
import { MessageFiles } from "../files/message-files";
import { LazyToolFiles } from "../files/lazy-tool-files";
import { LazyRequest } from "../requests/lazy-request";
import type { Decide } from "../requests/use-decision";
import { Activity } from "./activity";
import { NoticeLines } from "./notice-lines";
import { reasonOf, SupersededOutput } from "./superseded-output";

interface Props {
  agentId?: string;
  segment: Segment;
  /** Whether the model is writing it. */
  growing: boolean;
  /** Whether it is an activity in progress. */
  live: boolean;
  /** Whether its turn runs or waits: then the user can decide on its requests. */
  running: boolean;
  /** The calls that wait for the user. */
  waiting: ReadonlySet<string>;
  progress: Record<string, ToolProgress> | undefined;
  /** How many parts there were each time its turn was continued, if that is known. */
  resumedAt?: readonly number[];
  /** How many sources a mark `[1]` may name. */
  sources: number;
  onSource: (index: number) => void;
  onDecide: Decide;
  /** Whether it is nested: its headings aren't the page's. */
  isPassage?: boolean;
}

/** One piece of a reply, where it arrived. */
export function ReplyPart({ segment, ...props }: Props) {
  const { agentId, growing, live, running, waiting, progress, resumedAt, sources, onSource, onDecide, isPassage } = props;
  const words = useWords();
  switch (segment.kind) {
    case "text":
      return <Markdown text={segment.text} live={growing} sources={sources} onSource={onSource} isPassage={isPassage} />;
    case "activity":
      return <Activity steps={segment.steps} live={live} waiting={waiting} progress={progress} />;
    case "approval":
    case "client_request":
    case "question":
      return <LazyRequest agentId={agentId} segment={segment} running={running} onDecide={onDecide} />;
    case "chart":
      return <Chart data={segment.data} />;
    case "user_text":
      return (
        <div className="user-message" role="note" aria-label={words.youSaid}>
          <div className="bubble" dir="auto">
            {segment.text}
          </div>
        </div>
      );
    case "superseded":
      return (
        <SupersededOutput reason={reasonOf(segment, resumedAt)}>
          {segment.segments.map((it) => (
            <ReplyPart key={segmentKey(it)} {...props} segment={it} growing={false} live={false} running={false} />
          ))}
        </SupersededOutput>
      );
    case "files":
    case "elsewhere":
      return <LazyToolFiles segment={segment} />;
    case "images":
      return <MessageFiles files={segment.images} />;
    case "notices":
      return <NoticeLines notices={segment.notices} />;
  }
}
