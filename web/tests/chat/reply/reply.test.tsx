import {
  citationsOf,
  EMPTY_THREAD,
  isRunning,
  reduce,
  type Message,
  type Part,
  type RetrievalHitView,
  type Thread,
  type ThreadState,
  type ToolCallPartView,
  type TurnEvent,
} from "@threadkeep/client";
import { act } from "react";
import { describe, expect, it, vi } from "vitest";

import { RECORDINGS, begun, recording, type Recording } from "../../../packages/client/tests/recordings";
import { loadFiles } from "../../../src/chat/files/lazy-tool-files";
import { Sources } from "../../../src/chat/reply/sources";
import { ToolStep } from "../../../src/chat/reply/tool-step";
import { ThreadMessage, type MessageActions } from "../../../src/chat/thread-message";
import { UserMessage } from "../../../src/chat/user-message";
import { loadChunk } from "../../../src/ui/use-chunk";
import { loadWords } from "../../../src/words";
import { language } from "../../../src/words/language";
import { respond, click, draw, press, type Drawn } from "../../draw";

const ignored = () => {};

/** The last message of a conversation, as the list draws it. */
function last(state: ThreadState, thread: Partial<Thread> = {}, actions: Partial<MessageActions> = {}) {
  return (
    <ThreadMessage
      message={state.messages.at(-1)!}
      live={state.live}
      isLast
      isWanted={false}
      isEdited={false}
      running={isRunning(state)}
      busy={isRunning(state)}
      thread={thread as Thread}
      onChoose={ignored}
      onEdit={ignored}
      onDetails={ignored}
      {...actions}
    />
  );
}

const ended = (...messages: Message[]): ThreadState => ({ ...EMPTY_THREAD, messages });

/** A conversation in which the turn of a recording has just begun. */
function beginning(it: Recording): { state: ThreadState; turnId: string } {
  const live = begun(it);
  return { state: { ...EMPTY_THREAD, messages: [live.message], live }, turnId: it.events[0]!.turn_id };
}

/** What stands in a reply, from top to bottom. */
function order(drawn: Drawn): string[] {
  return [...drawn.place.querySelectorAll<HTMLElement>(".part .markdown, [role=group], .chart, .notice-line, .waiting")].map(
    (it) => it.getAttribute("aria-label") ?? it.textContent!,
  );
}

const said = (text: string): Part[] => [{ type: "text", text, iteration: 0 }];

/** Of a call that nobody is asked about. */
const quiet = { preview: "", isWaiting: false, open: true };

/** Opens the first activity: what shows its steps is loaded then. */
async function openActivity(drawn: Drawn): Promise<HTMLElement> {
  const details = drawn.allNamed<HTMLDetailsElement>("Activity")[0]!;
  await act(async () => {
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
    await import("../../../src/chat/reply/activity-steps");
  });
  return details;
}

const lines = (drawn: Drawn) => drawn.allNamed("Activity").map((it) => it.querySelector("summary")!.textContent);

const toolCall: ToolCallPartView = recording("everything, completed").message.parts.find((it) => it.type === "tool_call")!;

/** Once it is decided, its call's own line says so. */
const isRequest = (part: Element) => ["approval", "client_request"].includes((part as HTMLElement).dataset["kind"]!);

it.each(RECORDINGS)("draws every step of a turn, and leaves what it has drawn where it is: $name", (it) => {
  let { state, turnId } = beginning(it);
  const drawn = draw(last(state));
  let before: Element[] = [];
  for (const event of it.events) {
    state = reduce(state, { type: "events", turnId, events: [event] });
    drawn.again(last(state));
    const after = [...drawn.place.querySelectorAll(".part")];
    // What is superseded is put together.
    const kept = before.filter((part) => !isRequest(part));
    if (event.type !== "iteration_restart") expect(after.filter((part) => kept.includes(part))).toEqual(kept);
    before = after;
  }
  state = reduce(state, { type: "ended", turnId });
  drawn.again(last(state));
  const afterReload = draw(last(ended(it.message)));
  expect(order(drawn)).toEqual(order(afterReload));
  expect([...drawn.allNamed("Regenerate"), ...drawn.allNamed("Retry")]).toHaveLength(1);
});

it("shows text, thoughts and tools in the order in which they arrived", () => {
  const drawn = draw(last(ended(recording("text, tool, thought, tool, text").message)));
  expect(order(drawn)).toEqual([
    "I look at the numbers first.",
    "Activity",
    "Chart. 1: 1; 2: 2.",
    "Activity",
    "Revenue grew.",
  ]);
  expect(lines(drawn)).toEqual(["Ran sales: 2026", "Ran read: handbook"]);
});

it("shows what calls made together gave below their line", () => {
  const drawn = draw(last(ended(recording("parallel calls that end in another order").message)));
  expect(order(drawn)).toEqual([
    "All three.",
    "Activity",
    "Chart. 1: 1; 2: 2.",
    "It grew [1].",
    "Sources",
  ]);
  expect(lines(drawn)).toEqual(["Ran sales: 2025, 2026, searched documents: growth · 1 failed"]);
});

it("says what happens now, in the line of the activity where there is one", () => {
  const some = recording("text, tool, thought, tool, text");
  let { state, turnId } = beginning(some);
  const drawn = draw(last(state));
  const told = some.events.map((event) => {
    state = reduce(state, { type: "events", turnId, events: [event] });
    drawn.again(last(state));
    return drawn.place.querySelector(".waiting, [data-live] summary")?.textContent ?? "";
  });
  expect(told.filter((it, index) => it !== told[index - 1])).toEqual([
    "Thinking…",
    "",
    "Running sales: 2026",
    "Thinking…",
    "Now the",
    "Now the handbook.",
    "Running read: handbook",
    "Thinking…",
    "",
  ]);
});

it("folds thoughts to one line, and tells no duration that nobody notices", async () => {
  const drawn = draw(last(ended(recording("thoughts in two runs").message)));
  expect(lines(drawn)).toEqual(["Thought", "Thought"]);
  const opened = await openActivity(drawn);
  expect(opened.querySelector(".detail")!.textContent).toBe("First, this.");
});

it("folds a run of thoughts, searches and calls to one line that opens into its steps", async () => {
  const drawn = draw(last(ended(recording("thoughts between texts and tools").message)));
  expect(lines(drawn)).toEqual(["Searched for “growth”", "Thought", "Ran sales: 2026"]);
  const opened = await openActivity(drawn);
  expect([...opened.querySelectorAll("li")].map((it) => it.textContent)).toEqual(["Searched for “growth” memory", "Thought They mean both years."]);
});

it("says that it retries while it does, and nothing of it once it has failed", () => {
  const some = recording("plain text");
  let { state, turnId } = beginning(some);
  let seq = 0;
  const happen = (body: object) => {
    const event = { turn_id: turnId, seq: ++seq, at: seq, ...body } as TurnEvent;
    state = reduce(state, { type: "events", turnId, events: [event] });
    drawn.again(last(state));
  };
  const drawn = draw(last(state));
  const busy = { type: "notice", code: "MODEL_RETRIED", message: "The model provider is busy." };
  happen({ type: "turn_start", model: "m" });
  happen(busy);
  happen(busy);
  expect(lines(drawn)).toEqual(["Retrying…"]);
  happen({ type: "error", code: "GATEWAY_ERROR", message: "The model provider is busy.", retryable: true });
  state = reduce(state, { type: "ended", turnId });
  drawn.again(last(state));
  expect(order(drawn)).toEqual([]);
  expect(drawn.find("[role=alert]").textContent).toContain("The model provider is busy.");
});

it("names a step of another engine by its title", () => {
  const node = (title: string): Part => ({ type: "thought", title, text: "…", startedAt: "2026-01-01T00:00:00.000Z", durationMs: 0, iteration: 0 });
  const { message } = recording("plain text");
  const drawn = draw(last(ended({ ...message, parts: [node("Fetch"), ...message.parts] })));
  expect(lines(drawn)).toEqual(["Fetch"]);
});

it("says what has degraded where everyone sees it", () => {
  const drawn = draw(last(ended(recording("everything, completed").message)));
  expect(drawn.find(".notice-line").textContent).toBe("Couldn’t connect to mail; continuing without it.");
});

it("shows a tool at work, then what it gave", () => {
  const drawn = draw(
    <ToolStep {...quiet} call={{ ...toolCall, status: "running", durationMs: null }} progress={{ progress: 3, total: 4, message: "nearly" }} />,
  );
  const card = drawn.named("Tool call: search");
  expect(card.textContent).toContain("running");
  expect(card.textContent).toContain("nearly");
  expect(drawn.find("progress").getAttribute("value")).toBe("3");
  drawn.again(<ToolStep {...quiet} call={{ ...toolCall, result: { rows: 2 } }} progress={undefined} />);
  expect(card.querySelector("summary")!.textContent).toContain("done12 ms");
  expect(card.querySelector("progress")).toBeNull();
  expect([...card.querySelectorAll("pre")].at(-1)!.textContent).toBe('{\n  "rows": 2\n}');
});

it("shows why a tool gave nothing", async () => {
  const drawn = draw(last(ended(recording("tools that fail, draw and give files").message)));
  expect(lines(drawn)).toEqual(["Ran sales, mail, sum · 30 s · 1 timed out · 1 interrupted"]);
  await openActivity(drawn);
  const card = drawn.named("Tool call: mail");
  expect(card.textContent).toContain("timed out");
  expect(card.textContent).toContain("No answer in 30 s.");
});

it("names the files that tools gave, with type and size", async () => {
  respond.mockImplementation(async (url) =>
    url.pathname.endsWith("/f1")
      ? new Response(null, {
          headers: { "Content-Disposition": 'attachment; filename="sales.csv"', "Content-Type": "text/csv; charset=utf-8", "Content-Length": "2048" },
        })
      : new Response("{}", { status: 404 }),
  );
  await loadChunk(loadFiles);
  const drawn = draw(last(ended(recording("tools that fail, draw and give files").message)));
  const told = () => [...drawn.named("Files").querySelectorAll("button")].map((it) => it.textContent);
  expect(told()).toEqual(["File 1", "File 2"]);
  await act(async () => {});
  await vi.waitFor(() => expect(told()).toEqual(["sales.csvtext/csv · 2.0 KB", "Preview", "File 2"]));
});

it("never draws a long result whole", async () => {
  const drawn = draw(<ToolStep {...quiet} call={{ ...toolCall, result: "x".repeat(3_000_000) }} progress={undefined} />);
  expect(drawn.text.length).toBeLessThan(10_000);
  await click(drawn.named("Show more"));
  expect(drawn.text.length).toBeLessThan(250_000);
});

describe("the sources of a reply", () => {
  const hit = (source: string, page: number | null, chunkId: string) => ({ source, page, chunkId, text: source, score: 0.9 }) as RetrievalHitView;
  const hits = [hit("a.pdf", 3, "a"), hit("b.pdf", null, "b"), hit("c.pdf", 5, "c"), hit("b.pdf", null, "b")];
  const partsOf = (text: string) => [{ type: "retrieval", query: "?", hits }, { type: "text", text }] as unknown as Part[];
  const drawn = (text: string, onOpen: (index: number) => void = ignored) =>
    draw(<Sources citations={citationsOf(partsOf(text))} parts={partsOf(text)} onOpen={onOpen} />);
  const told = ({ place }: Drawn) => [...place.querySelectorAll("button")].map((it) => it.textContent);

  it("are chips of what it cites; the rest of what was found is shown when asked for", async () => {
    const opened = vi.fn();
    const sources = drawn("It grew [1], unlike `list[2]`.\n\n```py\nlist[3]\n```\n", opened);
    expect(told(sources)).toEqual(["1a.pdfp. 3", "2 more found"]);
    await click(sources.named("2 more found"));
    expect(told(sources)).toEqual(["1a.pdfp. 3", "2 more found", "2b.pdf", "3c.pdfp. 5"]);
    await click(sources.find("[data-source='3']"));
    expect(opened).toHaveBeenCalledWith(3);
  });

  it("have a passage that was found twice once, by whichever number it is cited", () => {
    expect(told(drawn("It grew [4]."))).toEqual(["2b.pdf", "2 more found"]);
  });

  it("are counted where nothing is cited", () => {
    expect(told(drawn("It grew."))).toEqual(["3 passages found"]);
  });
});

it("leads from a mark to its source, which is rendered, not shown as Markdown", async () => {
  const drawn = draw(last(ended(recording("documents").message)));
  await click(drawn.named("[1]"));
  await vi.waitFor(() => drawn.find("dialog h2"));
  expect(drawn.find("dialog h2").textContent).toBe("newton.pdf");
  expect(drawn.find("dialog .passage[data-cited] .markdown").textContent).toBeTruthy();
});

it("says why a reply failed, and offers to go on or to try again", async () => {
  const regenerate = vi.fn(async () => true);
  const send = vi.fn(async () => true);
  const thread = { branches: { regenerate }, sending: { send } } as unknown as Thread;
  const drawn = draw(last(ended(recording("tools that fail, draw and give files").message), thread));
  expect(drawn.find("[role=alert]").textContent).toContain("The server was interrupted.");
  await click(drawn.named("Continue"));
  expect(send).toHaveBeenCalledWith("Please continue.");
  await click(drawn.named("Retry"));
  expect(regenerate).toHaveBeenCalledOnce();
});

it("does not offer to continue what failed for another reason", () => {
  const drawn = draw(last(ended(recording("everything, timed out").message)));
  expect(drawn.allNamed("Continue")).toEqual([]);
  expect(drawn.allNamed("Retry")).toHaveLength(1);
});

it.each([
  ["en", "There isn’t enough budget left. It resets Dec 1, 2026, 12:30 AM. Usage"],
  ["zh", "预算余额不足，将于 2026年12月1日 00:30 重置。 用量"],
] as const)("says when a budget resets, and links to it: %s", async (chosen, text) => {
  await act(async () => language.set(chosen));
  await act(loadWords);
  const resets = new Date(2026, 11, 1, 0, 30).toISOString();
  const error = { code: "BUDGET_EXCEEDED", message: `There isn't enough left. It resets at ${resets}.`, retryable: false };
  const drawn = draw(last(ended({ ...recording("plain text").message, status: "FAILED", error })));
  const said = drawn.find("[role=alert]").textContent!.replaceAll(/\s/g, " ");
  await act(async () => language.set("en"));
  await act(loadWords);
  expect(said).toContain(text);
  expect(drawn.find("[role=alert] a").getAttribute("href")).toBe("#/usage");
});

it("marks what was stopped", () => {
  const drawn = draw(last(ended(recording("everything, stopped").message)));
  expect(drawn.find(".ending p").textContent).toBe("Stopped.");
  expect(drawn.allNamed("Retry")).toHaveLength(1);
});

describe("the versions of a message", () => {
  const { message } = recording("plain text");
  const second = (role: Message["role"]): Message => ({
    ...message,
    id: "v2",
    role,
    parts: said("Second."),
    siblings: { ids: ["v1", "v2", "v3"], index: 1 },
  });

  it.each(["user", "assistant"] as const)("are chosen by buttons and by keys: %s", async (role) => {
    const onChoose = vi.fn();
    const shown = second(role);
    const drawn = draw(last(ended(shown), {}, { onChoose }));
    const picker = drawn.named("Version 2 of 3");
    expect(picker.textContent).toBe("2 of 3");
    await click(drawn.named("Previous version"));
    await click(drawn.named("Next version"));
    await press(drawn.named("Next version"), "ArrowLeft");
    await press(drawn.named("Previous version"), "ArrowRight");
    expect(onChoose.mock.calls).toEqual(["v1", "v3", "v1", "v3"].map((id) => [id, shown]));
  });

  it("end, and the picker keeps the focus there", async () => {
    const onChoose = vi.fn();
    const drawn = draw(last(ended(second("assistant")), {}, { onChoose }));
    const next = drawn.named<HTMLButtonElement>("Next version");
    next.focus();
    const third: Message = { ...second("assistant"), id: "v3", siblings: { ids: ["v1", "v2", "v3"], index: 2 } };
    drawn.again(last(ended(third), {}, { onChoose }));
    expect(document.activeElement).toBe(next);
    expect(next.getAttribute("aria-disabled")).toBe("true");
    expect(next.title).toBe("This is the latest version.");
    await click(next);
    await press(next, "ArrowRight");
    expect(onChoose).not.toHaveBeenCalled();
  });

  it("stay while a turn runs, and the picker says why", async () => {
    const onChoose = vi.fn();
    const drawn = draw(last({ ...ended(second("user")), sending: true }, {}, { onChoose }));
    const previous = drawn.named<HTMLButtonElement>("Previous version");
    expect(previous.title).toContain("Wait for the answer");
    await click(previous);
    await press(previous, "ArrowLeft");
    expect(onChoose).not.toHaveBeenCalled();
  });

  it("are not spoken of where there is one", () => {
    expect(draw(last(ended(message))).allNamed("Previous version")).toEqual([]);
  });
});

it("regenerates, edits and forks the message that the user clicks", async () => {
  const { message } = recording("plain text");
  const regenerate = vi.fn(async () => true);
  const thread = { branches: { regenerate } } as unknown as Thread;
  const onFork = vi.fn();
  const reply = draw(last(ended(message), thread, { onFork }));
  await click(reply.named("Regenerate"));
  expect(regenerate).toHaveBeenCalledExactlyOnceWith(message, undefined);
  await vi.waitFor(() => reply.named("Continue in a new conversation"));
  await click(reply.named("Continue in a new conversation"));
  expect(onFork).toHaveBeenCalledExactlyOnceWith(message);
  const asked: Message = { ...message, role: "user" };
  const onEdit = vi.fn();
  await click(draw(last(ended(asked), {}, { onEdit })).named("Edit"));
  expect(onEdit).toHaveBeenCalledExactlyOnceWith(asked);
});

it("offers no fork where there is one conversation", () => {
  expect(draw(last(ended(recording("plain text").message))).allNamed("Continue in a new conversation")).toEqual([]);
});

it("folds what a person said at length", async () => {
  const message: Message = { ...recording("plain text").message, role: "user", parts: said("y".repeat(5000)) };
  const drawn = draw(<UserMessage message={message} busy={false} onEdit={ignored} />);
  expect(drawn.find(".bubble").textContent).toHaveLength(2001);
  await click(drawn.named("Show more"));
  expect(drawn.find(".bubble").textContent).toHaveLength(5000);
});

describe("steps of a program", () => {
  it("stand between its texts, with what they did and how long it took", () => {
    const drawn = draw(last(ended(recording("steps of a program").message)));
    // The question between them loads by itself.
    const told = order(drawn).filter((it) => /^(Activity|Order|It is)/.test(it));
    expect(told).toEqual(["Activity", "Order 7 costs 120 €.", "Activity", "It is on its way."]);
    expect(lines(drawn)).toEqual(["Looked up the order · 0.7 s", "Refunded 120 € · 0.7 s"]);
  });

  it("open into their names and ends, nested ones further in, and say so where nobody knows", async () => {
    const drawn = draw(last(ended(recording("steps that were cut off").message)));
    expect(lines(drawn)).toEqual(["Ran write · Ran refund · 0.7 s · 1 outcome unknown", "Ran sales", "Asked billing · 2 outcome unknown"]);
    await act(async () => loadChunk(() => import("../../../src/words/requests")));
    const first = await openActivity(drawn);
    expect([...first.querySelectorAll("li")].map((it) => it.dataset["status"])).toEqual(["ok", "unknown"]);
    expect(drawn.named("Step: refund").textContent).toContain("Nobody knows whether this happened.");
    expect(drawn.named("Step: write").textContent).not.toContain("Nobody");
    const nested = drawn.allNamed<HTMLDetailsElement>("Activity")[2]!;
    await act(async () => {
      nested.open = true;
      nested.dispatchEvent(new Event("toggle"));
    });
    expect([...nested.querySelectorAll("li")].map((it) => it.style.getPropertyValue("--depth"))).toEqual(["", "1"]);
  });

  it("tell that the turn waits for its program", () => {
    const message = recording("plain text").message;
    const notice: Part = { type: "notice", code: "AGENT_ABSENT", message: "Waiting for the agent's program (orders) to connect.", iteration: 0 };
    const { state } = beginning(recording("plain text"));
    const waiting = { ...message, parts: [notice] };
    const drawn = draw(last({ ...state, messages: [waiting], live: { ...state.live!, message: waiting } }));
    expect(drawn.place.querySelector(".notice-line")!.textContent).toBe("Waiting for the agent’s program (orders) to connect");
  });

  it("no longer tell of it once the program goes on", () => {
    const message = recording("plain text").message;
    const notice: Part = { type: "notice", code: "AGENT_ABSENT", message: "Waiting for the agent's program (orders) to connect.", iteration: 0 };
    const other: Part = { type: "notice", code: "AGENT_NOTICE", message: "Slower today.", iteration: 0 };
    const drawn = draw(last(ended({ ...message, parts: [notice, other, ...said("Here it is.")] })));
    expect([...drawn.place.querySelectorAll(".notice-line")].map((it) => it.textContent)).toEqual(["Slower today."]);
  });
});
