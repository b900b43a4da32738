import { describe, expect, it } from "vitest";

import { type MessageView } from "../src/api/schema";
import { type TurnEvent } from "../src/turn/events";
import { fold, foldAll, startReply } from "../src/turn/fold";
import recorded from "./recorded.json";

interface Recording {
  name: string;
  events: TurnEvent[];
  message: MessageView;
}

const RECORDINGS = recorded as unknown as Recording[];

describe("the fold of recorded logs", () => {
  it.each(RECORDINGS)("is the message that the server gives: $name", ({ events, message }) => {
    const { message: folded } = foldAll(startReply(message), events);
    expect({ ...folded, archived: message.archived }).toEqual(message);
  });

  it.each(RECORDINGS)("does not change when events come twice: $name", ({ events, message }) => {
    const once = foldAll(startReply(message), events);
    expect(foldAll(once, events)).toBe(once);
    const stuttering = events.flatMap((event, index) => [event, ...events.slice(Math.max(0, index - 3), index)]);
    expect(foldAll(startReply(message), stuttering)).toEqual(once);
  });

  it("never changes what it was given", () => {
    const { events, message } = RECORDINGS[0]!;
    const start = Object.freeze(startReply(message));
    const before = structuredClone(start);
    events.reduce(fold, start);
    expect(start).toEqual(before);
  });

  it("keeps the text of a turn that was stopped or failed", () => {
    for (const { message } of RECORDINGS.filter((it) => it.message.status !== "COMPLETED"))
      expect(message.content).not.toBe("");
  });
});
