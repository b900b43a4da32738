import { act } from "react";
import { expect, it, vi } from "vitest";

import { type MessageView } from "../src/api/schema";
import { EntryView } from "../src/components/entry-view";
import { Sources } from "../src/components/sources";
import { ToolCallCard } from "../src/components/tool-call-card";
import { UserMessage } from "../src/components/user-message";
import { entriesOf } from "../src/thread/entries";
import { EMPTY, isRunning, reduce, type ThreadState } from "../src/thread/reduce";
import { type Thread } from "../src/thread/thread";
import { type TurnEvent } from "../src/turn/events";
import { startReply, type LiveReply } from "../src/turn/fold";
import { answer, click, draw } from "./draw";
import recorded from "./recorded.json";

// What draws charts is large, and needs a real canvas.
vi.mock("../src/chart/draw", () => ({ draw: () => () => {} }));

interface Recording {
  name: string;
  events: TurnEvent[];
  message: MessageView;
}

const RECORDINGS = recorded as unknown as Recording[];

function recording(name: string): Recording {
  return RECORDINGS.find((it) => it.name === name)!;
}

const ignored = () => {};

/** The last entry of a conversation, as the list draws it. */
function last(state: ThreadState, thread: Partial<Thread> = {}) {
  return (
    <EntryView
      entry={entriesOf(state.messages).at(-1)!}
      live={state.live}
      isLast
      isWanted={false}
      running={isRunning(state)}
      thread={thread as Thread}
      onDetails={ignored}
    />
  );
}

const ended = (...messages: MessageView[]): ThreadState => ({ ...EMPTY, messages });

/** A conversation in which the turn of a recording has just begun. */
function begun({ events, message }: Recording): { state: ThreadState; turnId: string } {
  const live: LiveReply = startReply(message);
  const turnId = events[0]!.turn_id;
  return { state: { ...EMPTY, messages: [live.message], live }, turnId };
}

it.each(RECORDINGS)("draws every step of a turn: $name", (it) => {
  let { state, turnId } = begun(it);
  const drawn = draw(last(state));
  for (const event of it.events) {
    state = reduce(state, { type: "events", turnId, events: [event] });
    drawn.again(last(state));
  }
  state = reduce(state, { type: "ended", turnId });
  drawn.again(last(state));
  const again = draw(last(ended(state.messages.at(-1)!)));
  expect(drawn.find(".markdown").textContent).toBe(again.find(".markdown").textContent);
  expect(drawn.named("Regenerate").isConnected).toBe(true);
});

it("tells the thoughts, folded, with how long they took", () => {
  const drawn = draw(last(ended(recording("thoughts in two runs").message)));
  const card = drawn.named<HTMLDetailsElement>("Thought process");
  expect(card.open).toBe(false);
  expect(card.querySelector("summary")!.textContent).toBe("Thought for 3 ms2 steps");
  expect([...card.querySelectorAll(".detail")].map((it) => it.textContent)).toEqual(["First, this.", "Then that."]);
});

it("says what has degraded where everyone sees it", () => {
  const drawn = draw(last(ended(recording("everything, completed").message)));
  expect(drawn.find(".notice").textContent).toBe("mail is away");
});

it("shows a tool at work, then what it gave", () => {
  const [call] = recording("everything, completed").message.toolCalls;
  const drawn = draw(
    <ToolCallCard call={{ ...call!, status: "running", durationMs: null }} progress={{ progress: 3, total: 4, message: "nearly" }} />,
  );
  const card = drawn.named("Tool call: search");
  expect(card.textContent).toContain("running");
  expect(card.textContent).toContain("nearly");
  expect(drawn.find("progress").getAttribute("value")).toBe("3");
  drawn.again(<ToolCallCard call={{ ...call!, result: { rows: 2 } }} progress={undefined} />);
  expect(card.querySelector("summary")!.textContent).toContain("done12 ms");
  expect(card.querySelector("progress")).toBeNull();
  expect([...card.querySelectorAll("pre")].at(-1)!.textContent).toBe('{\n  "rows": 2\n}');
});

it("shows why a tool gave nothing", () => {
  const drawn = draw(last(ended(recording("tools that fail, draw and give files").message)));
  const card = drawn.named("Tool call: mail");
  expect(card.textContent).toContain("timed out");
  expect(card.textContent).toContain("No answer in 30 s.");
});

it("names the files that tools gave, with type and size", async () => {
  answer.mockImplementation(async (url) =>
    url.pathname.endsWith("/f1")
      ? new Response(null, {
          headers: { "Content-Disposition": 'attachment; filename="sales.csv"', "Content-Type": "text/csv; charset=utf-8", "Content-Length": "2048" },
        })
      : new Response("{}", { status: 404 }),
  );
  const drawn = draw(last(ended(recording("tools that fail, draw and give files").message)));
  const told = () => [...drawn.named("Files").querySelectorAll("button")].map((it) => it.textContent);
  expect(told()).toEqual(["File 1", "File 2"]);
  await act(async () => {});
  await vi.waitFor(() => expect(told()).toEqual(["sales.csvtext/csv · 2.0 KB", "File 2"]));
});

it("never draws a long result whole", async () => {
  const [call] = recording("everything, completed").message.toolCalls;
  const drawn = draw(<ToolCallCard call={{ ...call!, result: "x".repeat(3_000_000) }} progress={undefined} />);
  expect(drawn.text.length).toBeLessThan(10_000);
  await click(drawn.named("Show more"));
  expect(drawn.text.length).toBeLessThan(250_000);
});

it("names sources with page and match, and links to the web only", () => {
  const { citations } = recording("documents").message;
  const web = { ...citations[1]!, index: 3, title: "site", url: "https://example.org/" };
  const harm = { ...citations[1]!, index: 4, title: "harm", url: "javascript:alert(1)" };
  const drawn = draw(<Sources citations={[...citations, web, harm]} place="r" />);
  expect(drawn.find("li").textContent).toContain("newton.pdfpage 12match 0.91");
  expect([...drawn.place.querySelectorAll("a")].map((it) => it.href)).toEqual(["https://example.org/"]);
});

it("leads from a mark to its source", async () => {
  const drawn = draw(last(ended(recording("documents").message)));
  await click(drawn.named("[1]"));
  expect(document.activeElement!.textContent).toContain("newton.pdf");
});

it("says why an answer failed, and offers to go on or to try again", async () => {
  const thread = { regenerate: vi.fn(async () => true), send: vi.fn(async () => true) };
  const drawn = draw(last(ended(recording("tools that fail, draw and give files").message), thread));
  expect(drawn.find("[role=alert]").textContent).toContain("The server was interrupted here.");
  await click(drawn.named("Continue"));
  expect(thread.send).toHaveBeenCalledWith("Please continue.");
  await click(drawn.named("Try again"));
  expect(thread.regenerate).toHaveBeenCalledOnce();
});

it("does not offer to continue what failed for another reason", () => {
  const drawn = draw(last(ended(recording("everything, timed out").message)));
  expect(drawn.allNamed("Continue")).toEqual([]);
  expect(drawn.allNamed("Try again")).toHaveLength(1);
});

it("marks what was stopped", () => {
  expect(draw(last(ended(recording("everything, stopped").message))).find(".ending").textContent).toBe("Stopped.");
});

it("switches between the versions of an answer", async () => {
  const { message } = recording("plain text");
  const first: MessageView = { ...message, id: "v1", seq: 2, content: "First.", status: "OVERWRITTEN" };
  const second: MessageView = { ...message, id: "v2", seq: 3, content: "Second." };
  const drawn = draw(last(ended(first, second)));
  expect(drawn.find(".markdown").textContent).toBe("Second.");
  expect(drawn.named<HTMLButtonElement>("Next version").disabled).toBe(true);
  await click(drawn.named("Previous version"));
  expect(drawn.find(".markdown").textContent).toBe("First.");
  expect(drawn.named("Version 1 of 2").textContent).toBe("1/2");
  expect(drawn.allNamed("Regenerate")).toEqual([]);
});

it("folds what a person said at length", async () => {
  const said: MessageView = { ...recording("plain text").message, role: "user", content: "y".repeat(5000) };
  const drawn = draw(<UserMessage message={said} />);
  expect(drawn.find(".bubble").textContent).toHaveLength(2001);
  await click(drawn.named("Show more"));
  expect(drawn.find(".bubble").textContent).toHaveLength(5000);
});
