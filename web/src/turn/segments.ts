/** A reply as it is shown: its texts in order, and between two of them what the agent did as one line. Pure. */

import { isBlank, isMeasuredImage, type KeptFile, type Part, type PartOf } from "@threadkeep/client";

/** A thought, a search, a tool call, a step of a program, or a retry of the model. */
export type Step = PartOf<"thought" | "retrieval" | "tool_call" | "step" | "notice">;

/** Where its parts lie in the reply's. */
interface Range {
  from: number;
  to: number;
}

export type Segment = Range &
  (
    | { kind: "text"; text: string }
    /** What the agent did between two texts. */
    | { kind: "activity"; steps: readonly Step[] }
    /** A call that waits for its approval. */
    | { kind: "approval"; call: PartOf<"tool_call"> }
    /** A call that waits for another client to run it. */
    | { kind: "client_request"; call: PartOf<"tool_call"> }
    | { kind: "chart"; data: unknown }
    | { kind: "files"; ids: readonly string[] }
    /** What only another engine has, under its own ids. */
    | { kind: "elsewhere"; ids: readonly string[] }
    | { kind: "images"; images: readonly KeptFile[] }
    | { kind: "notices"; notices: readonly PartOf<"notice">[] }
    /** `asker` is the call whose server asks; the model asks by itself. */
    | { kind: "question"; question: PartOf<"question">; asker?: PartOf<"tool_call"> }
    /** What the user said meanwhile. */
    | { kind: "user_text"; text: string }
    /** The output of a model call before its restart. */
    | { kind: "superseded"; segments: readonly Segment[] }
  );

interface Placed<P extends Part = Part> {
  part: P;
  at: number;
}

/** Identifies a segment while the reply grows. */
export function segmentKey({ kind, from }: Segment): string {
  return `${kind}-${from}`;
}

export function segmentsOf(parts: readonly Part[]): Segment[] {
  const placed = parts.map((part, at) => ({ part, at }));
  return runsOf(placed).flatMap((run) => {
    const segments = plainSegments(run).map((it) => withAsker(it, parts));
    if (!run[0]!.part.superseded || !segments.length) return segments;
    return [{ kind: "superseded", from: run[0]!.at, to: run.at(-1)!.at, segments }];
  });
}

function withAsker(segment: Segment, parts: readonly Part[]): Segment {
  if (segment.kind !== "question" || !segment.question.toolCallId) return segment;
  const { toolCallId } = segment.question;
  const asker = parts.find((it): it is PartOf<"tool_call"> => it.type === "tool_call" && it.toolCallId === toolCallId);
  return asker && !isAsking(asker) ? { ...segment, asker } : segment;
}

/** Whether it shows an activity's output, below its line. */
export function isOutput({ kind }: Segment): boolean {
  return ["approval", "client_request", "chart", "files", "elsewhere", "images", "notices"].includes(kind);
}

/** Parts that are superseded, and parts that are not, as they follow one another. */
function runsOf(placed: readonly Placed[]): Placed[][] {
  const runs: Placed[][] = [];
  for (const it of placed) {
    const run = runs.at(-1);
    if (run && !run[0]!.part.superseded === !it.part.superseded) run.push(it);
    else runs.push([it]);
  }
  return runs;
}

/** An activity in progress: its steps, and what appears below its line. */
class Activity {
  readonly steps: Placed<Step>[] = [];
  readonly shown: Segment[] = [];

  /** Whether a step belongs to it: what was shown below the line is not pushed away from what came after it. */
  takes(step: Step): boolean {
    return this.steps.at(-1)?.part.iteration === step.iteration || !this.#outputs().length;
  }

  segments(): Segment[] {
    if (!this.steps.length) return this.shown;
    const [from, to] = [this.steps[0]!.at, this.steps.at(-1)!.at];
    return [{ kind: "activity", from, to, steps: this.steps.map((it) => it.part) }, ...this.#outputs()];
  }

  /** The output of calls made together appears below their requests: a request doesn't move while it is read. */
  #outputs(): Segment[] {
    const calls = this.steps.filter((it): it is Placed<PartOf<"tool_call">> => it.part.type === "tool_call");
    const isShown = new Set(this.shown.flatMap(fileIds));
    return [...calls.flatMap(requestsOf), ...calls.flatMap((it) => outputsOf(it, isShown)), ...this.shown];
  }
}

/** What a call waits for; how that ended is in the call's own line. */
function requestsOf({ part: call, at }: Placed<PartOf<"tool_call">>): Segment[] {
  const request = call.clientRequest ?? call.approval;
  if (!request || request.action !== undefined || call.status !== "running") return [];
  return [{ kind: call.clientRequest ? "client_request" : "approval", from: at, to: at, call }];
}

/** A call's chart and its files, except those shown as images. */
function outputsOf({ part: { chartData, artifactIds = [] }, at }: Placed<PartOf<"tool_call">>, isShown: ReadonlySet<string>): Segment[] {
  const given: Segment[] = [];
  const ids = artifactIds.filter((id) => !isShown.has(id));
  if (chartData != null) given.push({ kind: "chart", from: at, to: at, data: chartData });
  if (ids.length) given.push({ kind: "files", from: at, to: at, ids });
  return given;
}

function fileIds(segment: Segment): readonly string[] {
  if (segment.kind === "images") return segment.images.map((it) => it.fileId);
  return segment.kind === "files" ? segment.ids : [];
}

function plainSegments(placed: readonly Placed[]): Segment[] {
  const segments: Segment[] = [];
  let activity = new Activity();
  const end = () => {
    segments.push(...activity.segments());
    activity = new Activity();
  };
  for (const { part, at } of placed) {
    if (isStep(part)) {
      if (!activity.takes(part)) end();
      activity.steps.push({ part, at });
      continue;
    }
    const segment = segmentOf(part, { from: at, to: at });
    if (!segment) continue;
    if (isOutput(segment)) add(activity.shown, segment);
    else {
      end();
      segments.push(segment);
    }
  }
  end();
  return segments;
}

function isStep(part: Part): part is Step {
  switch (part.type) {
    case "thought":
      return !isBlank(part.text) || !!part.title;
    case "retrieval":
      // The search tool's call represents it.
      return !part.toolCallId;
    case "tool_call":
      return !isAsking(part);
    case "step":
      return true;
    case "notice":
      return isRetry(part);
    default:
      return false;
  }
}

/** The last two are in messages of older versions. */
const RETRIES = ["MODEL_RETRIED", "MODEL_BUSY", "MODEL_UNREACHABLE"];

/** Whether it says that the model call is retried. */
export function isRetry(part: Part): boolean {
  return part.type === "notice" && RETRIES.includes(part.code);
}

/** The question represents the call that asks it, unless that fails. */
function isAsking({ server, toolName, status }: PartOf<"tool_call">): boolean {
  return server === "user" && toolName === "ask_user" && !["error", "timeout", "unknown"].includes(status);
}

function segmentOf(part: Part, range: Range): Segment | null {
  switch (part.type) {
    case "text":
      return isBlank(part.text) ? null : { ...range, kind: "text", text: part.text };
    case "file":
      if (isMeasuredImage(part)) return { ...range, kind: "images", images: [part] };
      return { ...range, kind: part.isElsewhere ? "elsewhere" : "files", ids: [part.fileId] };
    case "notice":
      return { ...range, kind: "notices", notices: [part] };
    case "question":
      return { ...range, kind: "question", question: part };
    case "user_text":
      return { ...range, kind: "user_text", text: part.text };
    default:
      return null;
  }
}

/** Adds it to the last one where both are of a kind that is shown side by side. */
function add(shown: Segment[], next: Segment): void {
  const last = shown.at(-1);
  const joined = last && join(last, next);
  if (joined) shown[shown.length - 1] = joined;
  else shown.push(next);
}

function join(last: Segment, { to, ...next }: Segment): Segment | null {
  if (last.kind === "files" && next.kind === "files") return { ...last, to, ids: [...last.ids, ...next.ids] };
  if (last.kind === "elsewhere" && next.kind === "elsewhere") return { ...last, to, ids: [...last.ids, ...next.ids] };
  if (last.kind === "images" && next.kind === "images") return { ...last, to, images: [...last.images, ...next.images] };
  if (last.kind === "notices" && next.kind === "notices") return { ...last, to, notices: [...last.notices, ...next.notices] };
  return null;
}
