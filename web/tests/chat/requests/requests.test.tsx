import {
  ApiError,
  EMPTY_THREAD,
  isRunning,
  isWaiting,
  reduce,
  type AnswerBody,
  type Thread,
  type ThreadState,
  type TurnEvent,
} from "@threadkeep/client";
import { act } from "react";
import { beforeAll, describe, expect, it, vi } from "vitest";

import { begun, recording } from "../../../packages/client/tests/recordings";
import { loadRequests } from "../../../src/chat/requests/lazy-request";
import { ThreadMessage } from "../../../src/chat/thread-message";
import { outbox } from "../../../src/state/front-end";
import { loadChunk } from "../../../src/ui/use-chunk";
import { click, draw, press, type, type Drawn } from "../../draw";

beforeAll(async () => void (await loadChunk(loadRequests)));

const ignored = () => {};
const some = recording("plain text");
const turnId = some.events[0]!.turn_id;

/** A turn that has done this. */
class Turn {
  state: ThreadState;
  #seq = 0;

  constructor(...bodies: object[]) {
    const live = begun(some);
    this.state = { ...EMPTY_THREAD, messages: [live.message], live };
    this.happen({ type: "turn_start", model: "m" }, { type: "iteration_start", iteration: 1 }, ...bodies);
  }

  happen(...bodies: object[]): void {
    const events = bodies.map((body) => ({ turn_id: turnId, seq: ++this.#seq, at: 1_800_000_000_000 + this.#seq, ...body }) as TurnEvent);
    this.state = reduce(this.state, { type: "events", turnId, events });
  }

  end(): void {
    this.state = reduce(this.state, { type: "ended", turnId });
  }
}

function reply(state: ThreadState, decide: Thread["sending"]["decide"] = async () => true) {
  return (
    <ThreadMessage
      message={state.messages.at(-1)!}
      live={state.live}
      isLast
      isWanted={false}
      isEdited={false}
      running={isRunning(state)}
      busy={isRunning(state)}
      thread={thread(decide)}
      onChoose={ignored}
      onEdit={ignored}
      onDetails={ignored}
    />
  );
}

const threads = new Map<unknown, Thread>();
function thread(decide: Thread["sending"]["decide"]): Thread {
  if (!threads.has(decide)) threads.set(decide, { sending: { decide } } as Thread);
  return threads.get(decide)!;
}

const called = (id: string, values: object = {}) => ({ type: "tool_call", tool_call_id: id, tool_name: "order", server: "shop", arguments: values });
const asked = (id: string, call: string) => ({ type: "approval_request", request_id: id, kind: "tool", message: "", expires_at: 1_900_000_000_000, tool_call_id: call });
const question = (more: object = {}) => ({ type: "approval_request", request_id: "q", kind: "question", message: "Which one?", expires_at: 1_900_000_000_000, ...more });
const answered = (id: string, action: string, more: object = {}) => ({ type: "approval_response", request_id: id, action, ...more });

function given() {
  const bodies: AnswerBody[] = [];
  const decide = vi.fn(async (_: string, __: string, body: AnswerBody) => bodies.push(body) > 0);
  return { bodies, decide };
}

const button = (drawn: Drawn, name: string) => drawn.named<HTMLButtonElement>(name);

describe("a call that needs leave", () => {
  const values = { item: "tea", count: 3, tags: ["a", "b"], to: { city: "Bern" } };

  it("shows what would be called, with its arguments as people read them", async () => {
    const turn = new Turn(called("t1", values), asked("r1", "t1"));
    const drawn = draw(reply(turn.state));
    expect(drawn.named("Let the agent run order from shop?").isConnected).toBe(true);
    const rows = [...drawn.place.querySelectorAll("dl.arguments > div")].map((it) => it.textContent);
    expect(rows).toEqual(["itemtea", "count3", "tagsa, b", 'to{"city":"Bern"}']);
    expect(drawn.find(".activity .summary-text").textContent).toBe("Waiting for you · order");
    expect(drawn.place.querySelector(".waiting, progress")).toBeNull();
    await click(drawn.named("View as JSON"));
    expect(drawn.find(".approval pre").textContent).toContain('"city": "Bern"');
  });

  it("shows the end of a long command, which can be allowed only once all of it was shown", async () => {
    const { bodies, decide } = given();
    const command = `ls${" ".repeat(9000)}; rm -r .`;
    const turn = new Turn(called("t1", { command }), asked("r1", "t1"));
    const drawn = draw(reply(turn.state, decide));
    expect(drawn.find("dd").textContent).toMatch(/^ls .*7,011 characters not shown.*; rm -r \.$/);
    const allow = button(drawn, "Allow once");
    expect(allow.getAttribute("aria-disabled")).toBe("true");
    expect(document.getElementById(allow.getAttribute("aria-describedby")!)!.textContent).toBe("Show everything before you allow it.");
    await click(allow);
    await click(button(drawn, "Allow for this conversation"));
    expect(bodies).toEqual([]);
    await click(button(drawn, "Show everything"));
    expect(drawn.find("dd").textContent).toBe(command);
    await click(button(drawn, "Allow once"));
    expect(bodies).toEqual([{ action: "allow", scope: "once" }]);
  });

  it.each([
    ["many lines", { command: `ls${"\n".repeat(60)}rm -r .` }],
    ["many arguments", { ...Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`option${at}`, at])), last: "rm -r ." }],
    ["a nested value", { steps: [{ run: `ls ${"x".repeat(5000)}; rm -r .` }] }],
  ])("lets nobody allow or change what is not all shown: %s", async (_, values) => {
    const { bodies, decide } = given();
    const drawn = draw(reply(new Turn(called("t1", values), asked("r1", "t1")).state, decide));
    for (const label of ["Allow once", "Allow for this conversation", "Edit"]) {
      expect(button(drawn, label).getAttribute("aria-disabled")).toBe("true");
      await click(button(drawn, label));
    }
    expect([bodies, drawn.place.querySelector(".edit-arguments")]).toEqual([[], null]);
    expect(drawn.find(".approval").textContent).toContain("not shown");
    await click(button(drawn, "Show everything"));
    expect(drawn.find(".approval").textContent).not.toContain("not shown");
    expect(drawn.place.querySelectorAll("dl.arguments > div")).toHaveLength(Object.keys(values).length);
    expect(drawn.find("dl.arguments").textContent).toContain("rm -r .");
    await click(button(drawn, "Allow once"));
    expect(bodies).toEqual([{ action: "allow", scope: "once" }]);
  });

  it("can always be denied", async () => {
    const { bodies, decide } = given();
    const drawn = draw(reply(new Turn(called("t1", { command: "x".repeat(9000) }), asked("r1", "t1")).state, decide));
    await click(button(drawn, "Deny"));
    expect(bodies).toEqual([{ action: "deny" }]);
  });

  it("shows characters that hide or reorder others, and values up to a few thousand characters whole", () => {
    const hiding = { "pa\u200bth": "a\u202etxt.exe", tag: "ok\u{e0041}\r", long: `${"x".repeat(3000)}tail` };
    const drawn = draw(reply(new Turn(called("t1", hiding), asked("r1", "t1")).state));
    const rows = [...drawn.place.querySelectorAll("dl.arguments > div")].map((it) => it.textContent);
    expect(rows.slice(0, 2)).toEqual(["pa\\u200btha\\u202etxt.exe", "tagok\\udb40\\udc41\\u000d"]);
    expect(rows[2]!.endsWith("tail")).toBe(true);
    expect(button(drawn, "Allow once").getAttribute("aria-disabled")).toBe("false");
  });

  it("says which decision has not been sent yet, perhaps one of an earlier visit", async () => {
    const account = { server: "", userId: "" };
    const entry = { kind: "answer", id: "k", account, createdAt: 1, conversationId: "c", turnId, requestId: "r1", body: { action: "deny" } } as const;
    outbox.items.set([{ entry, state: "waiting", lasts: true, failures: 1 }]);
    const drawn = draw(reply(new Turn(called("t1"), asked("r1", "t1")).state));
    expect(drawn.find(".unsent").textContent).toContain("Your answer: denied. Not sent yet.");
    await act(async () => outbox.items.set([]));
    expect(drawn.place.querySelector(".unsent")).toBeNull();
  });

  it.each<[string, AnswerBody]>([
    ["Allow once", { action: "allow", scope: "once" }],
    ["Allow for this conversation", { action: "allow", scope: "conversation" }],
    ["Deny", { action: "deny" }],
  ])("is answered by a button, once: %s", async (name, body) => {
    const { bodies, decide } = given();
    const drawn = draw(reply(new Turn(called("t1"), asked("r1", "t1")).state, decide));
    await click(button(drawn, name));
    await click(button(drawn, name));
    expect(bodies).toEqual([body]);
    expect(decide).toHaveBeenCalledWith(turnId, "r1", body);
  });

  it("says what was chosen, wherever it was, and the focus goes on where it was chosen", async () => {
    const turn = new Turn(called("t1"), called("t2"), asked("r1", "t1"), asked("r2", "t2"));
    const { decide } = given();
    const here = draw(reply(turn.state, decide));
    await click(here.allNamed("Allow once")[0]!);
    turn.happen(answered("r1", "allow", { scope: "conversation" }));
    here.again(reply(turn.state, decide));
    expect(here.place.querySelectorAll(".approval")).toHaveLength(1);
    expect((document.activeElement as HTMLElement).dataset["request"]).toBe("r2");
    await click(here.named("Deny"));
    turn.happen(answered("r2", "deny"));
    here.again(reply(turn.state, decide));
    expect(document.activeElement!.matches(".activity > summary")).toBe(true);
  });

  it("leaves the focus where it is when it was answered elsewhere", () => {
    const turn = new Turn(called("t1"), asked("r1", "t1"));
    const drawn = draw(reply(turn.state));
    const before = document.activeElement;
    turn.happen(answered("r1", "allow"));
    drawn.again(reply(turn.state));
    expect(document.activeElement).toBe(before);
  });

  it("takes other arguments, if they are JSON of an object", async () => {
    const { bodies, decide } = given();
    const drawn = draw(reply(new Turn(called("t1", { count: 3 }), asked("r1", "t1")).state, decide));
    await click(button(drawn, "Edit"));
    const box = drawn.find<HTMLTextAreaElement>(".edit-arguments textarea");
    expect(document.activeElement).toBe(box);
    await type(box, '{"count": ');
    expect(drawn.find(".edit-arguments .fault").textContent).toContain("Invalid JSON");
    await type(box, "[1]");
    expect(drawn.find(".edit-arguments .fault").textContent).toContain("must be a JSON object");
    expect(button(drawn, "Allow with changes").disabled).toBe(true);
    await type(box, '{"count": 1}');
    await click(button(drawn, "Allow with changes"));
    expect(bodies).toEqual([{ action: "edit", arguments: { count: 1 } }]);
  });

  it("is left unedited with Escape", async () => {
    const drawn = draw(reply(new Turn(called("t1", { count: 3 }), asked("r1", "t1")).state));
    await click(button(drawn, "Edit"));
    await press(drawn.find(".edit-arguments textarea"), "Escape");
    expect(button(drawn, "Allow once").isConnected).toBe(true);
  });

  it("shows the arguments that were chosen instead", () => {
    const turn = new Turn(called("t1", { count: 3 }), asked("r1", "t1"), answered("r1", "edit", { arguments: { count: 1 } }));
    turn.happen({ type: "tool_result", tool_call_id: "t1", tool_name: "order", status: "ok", result: 1, duration_ms: 120 });
    turn.happen({ type: "done", status: "COMPLETED" });
    turn.end();
    const drawn = draw(reply(turn.state));
    expect(drawn.find(".activity summary").textContent).toBe("Ran order: 1 · allowed with changes · 0.1 s");
    expect(drawn.place.querySelectorAll(".part")).toHaveLength(1);
  });

  it.each([
    [409, "APPROVAL_ANSWERED", "already answered this"],
    [410, "APPROVAL_EXPIRED", "has expired"],
    [404, "APPROVAL_NOT_FOUND", "request is closed"],
    [422, "INVALID_REQUEST", "count must be a number"],
  ])("says why a decision was not taken: %i", async (status, code, told) => {
    const refuse = async () => {
      throw new ApiError(status, code, "count must be a number");
    };
    const drawn = draw(reply(new Turn(called("t1"), asked("r1", "t1")).state, refuse));
    await click(button(drawn, "Allow once"));
    expect(drawn.find("[role=alert]").textContent).toContain(told);
    expect(button(drawn, "Allow once").getAttribute("aria-disabled")).toBe("false");
  });

  it("can no longer be answered when the turn has ended", () => {
    const turn = new Turn(called("t1"), asked("r1", "t1"), { type: "done", status: "CANCELLED" });
    turn.end();
    const drawn = draw(reply(turn.state));
    expect(drawn.allNamed("Allow once")).toEqual([]);
    expect(drawn.find(".activity summary").textContent).toMatch(/^Didn’t run order · not answered/);
  });

  it("is what the turn waits for only when no other tool is at work", () => {
    const turn = new Turn(called("t1"), called("t2"), asked("r1", "t1"));
    expect(isWaiting(turn.state)).toBe(false);
    turn.happen({ type: "tool_result", tool_call_id: "t2", tool_name: "order", status: "ok", duration_ms: 1 });
    expect(isWaiting(turn.state)).toBe(true);
    turn.happen(answered("r1", "allow"));
    expect(isWaiting(turn.state)).toBe(false);
  });
});

describe("a question", () => {
  it("with choices has a button for each", async () => {
    const { bodies, decide } = given();
    const drawn = draw(reply(new Turn(question({ schema: { type: "string", enum: ["Red", "Blue"] } })).state, decide));
    expect(drawn.named("Question").textContent).toContain("Which one?");
    await click(button(drawn, "Blue"));
    expect(bodies).toEqual([{ action: "answer", content: "Blue" }]);
  });

  it("without choices takes a text, with Enter", async () => {
    const { bodies, decide } = given();
    const drawn = draw(reply(new Turn(question()).state, decide));
    const box = drawn.named<HTMLTextAreaElement>("Your answer");
    await press(box, "Enter");
    await type(box, " the red one ");
    await press(box, "Enter", { isComposing: true });
    expect(bodies).toEqual([]);
    await press(box, "Enter");
    expect(bodies).toEqual([{ action: "answer", content: "the red one" }]);
  });

  it("is declined", async () => {
    const { bodies, decide } = given();
    const turn = new Turn(question());
    const drawn = draw(reply(turn.state, decide));
    await click(button(drawn, "Decline"));
    expect(bodies).toEqual([{ action: "deny" }]);
    turn.happen(answered("q", "deny"));
    drawn.again(reply(turn.state, decide));
    expect(drawn.find(".outcome").textContent).toContain("Declined");
  });

  it("shows its answer, also one of a form", () => {
    const said = draw(reply(new Turn(question(), answered("q", "answer", { content: "Red" })).state));
    expect(said.find(".given").textContent).toBe("Red");
    const filled = draw(reply(new Turn(question(), answered("q", "answer", { content: { seats: 2 } })).state));
    expect(filled.find("dl.arguments").textContent).toBe("seats2");
  });

  it("with a form is checked before it is sent, and what is wrong gets the focus", async () => {
    const { bodies, decide } = given();
    const properties = {
      name: { type: "string", title: "Name", description: "As on the ticket" },
      seats: { type: "integer", minimum: 1, maximum: 9 },
      window: { type: "boolean", title: "At the window", default: true },
      class: { type: "string", enum: ["1", "2"], default: "2" },
    };
    const schema = { type: "object", properties, required: ["name", "seats"] };
    const drawn = draw(reply(new Turn(question({ kind: "elicitation", schema })).state, decide));
    const input = (name: string) => drawn.find<HTMLInputElement>(`[name=${name}]`);
    expect(drawn.find("form").textContent).toContain("As on the ticket");
    await type(input("seats"), "12");
    await click(button(drawn, "Submit"));
    expect(bodies).toEqual([]);
    expect([...drawn.place.querySelectorAll(".fault")].map((it) => it.textContent)).toEqual(["This field is required.", "Must be at most 9."]);
    expect(document.activeElement).toBe(input("name"));
    expect(input("name").getAttribute("aria-invalid")).toBe("true");
    await type(input("name"), "Ann");
    await type(input("seats"), "2");
    await act(async () => input("window").click());
    await click(button(drawn, "Submit"));
    expect(bodies).toEqual([{ action: "answer", content: { name: "Ann", seats: 2, window: false, class: "2" } }]);
  });

  it("that leads to a site names its host, and opens nothing that is not one", async () => {
    const { bodies, decide } = given();
    const url = "https://bank.example.org@evil.example/pay?x=1";
    const drawn = draw(reply(new Turn(question({ kind: "elicitation", url })).state, decide));
    const link = drawn.find<HTMLAnchorElement>(".site a");
    expect(link.textContent).toContain("Open evil.example");
    expect([link.target, link.rel]).toEqual(["_blank", "noopener noreferrer"]);
    await click(button(drawn, "Done"));
    expect(bodies).toEqual([{ action: "answer" }]);
    const harm = draw(reply(new Turn(question({ url: "javascript:alert(1)" })).state));
    expect(harm.place.querySelector("a")).toBeNull();
    expect(harm.allNamed("Done")).toEqual([]);
  });
});

describe("a call that another client runs", () => {
  const toClient = (id: string, call: string) => ({ ...asked(id, call), kind: "client_tool", message: "Waiting." });

  it("says so, and can only be denied here", async () => {
    const { bodies, decide } = given();
    const turn = new Turn(called("t1", { item: "tea" }), toClient("k1", "t1"));
    const drawn = draw(reply(turn.state, decide));
    expect(drawn.named("Waiting for another app to run order").isConnected).toBe(true);
    expect(drawn.find(".approval .detail").textContent).toContain("deny it here");
    expect(drawn.find("dl.arguments").textContent).toBe("itemtea");
    expect([...drawn.place.querySelectorAll(".approval .choices button")].map((it) => it.textContent)).toEqual(["Deny"]);
    expect(isWaiting(turn.state)).toBe(true);
    await click(button(drawn, "Deny"));
    expect(bodies).toEqual([{ action: "deny" }]);
  });

  it("shows the arguments that the user allowed, and that it was run there", () => {
    const turn = new Turn(called("t1", { item: "tea" }), asked("r1", "t1"), answered("r1", "edit", { arguments: { item: "milk" } }), toClient("k1", "t1"));
    const drawn = draw(reply(turn.state));
    expect(drawn.find(".approval.open dl.arguments").textContent).toBe("itemmilk");
    turn.happen(answered("k1", "result"), { type: "tool_result", tool_call_id: "t1", tool_name: "order", status: "ok", result: 1, duration_ms: 0 });
    drawn.again(reply(turn.state));
    expect(isWaiting(turn.state)).toBe(false);
    turn.happen({ type: "done", status: "COMPLETED" });
    turn.end();
    drawn.again(reply(turn.state));
    expect(drawn.find(".activity summary").textContent).toBe("Ran order: milk · run by the app");
  });
});

it("folds what was superseded, and says once that it was continued", () => {
  const text = (said: string) => ({ type: "text", text: said });
  const turn = new Turn(text("I loo"), { type: "turn_resumed", attempt: 1 }, { type: "iteration_restart", iteration: 1, from_seq: 3 });
  const drawn = draw(reply(turn.state));
  expect(drawn.named<HTMLDetailsElement>("Server restarted · answer resumed").open).toBe(false);
  expect(drawn.text).not.toContain("Continued after");
  expect(drawn.find(".waiting").isConnected).toBe(true);
  turn.happen(text("I look."), { type: "usage", input_tokens: 1, output_tokens: 1, estimated: false }, called("t1"), { type: "turn_resumed", attempt: 1 });
  drawn.again(reply(turn.state));
  expect(drawn.find(".ending[data-kind=continued]").textContent).toContain("Server restarted · answer resumed");
  expect([...drawn.place.querySelectorAll(".part > .markdown")].map((it) => it.textContent)).toEqual(["I look."]);
  const failed = new Turn(text("I loo"), { type: "iteration_restart", iteration: 1, from_seq: 3 });
  expect(draw(reply(failed.state)).named("Connection to the model lost · answer resumed").isConnected).toBe(true);
});

it("shows what the user said meanwhile where the turn took it in", () => {
  const drawn = draw(reply(new Turn({ type: "text", text: "One." }, { type: "user_message", message_id: "m9", content: "No, two!" }).state));
  expect(drawn.named("You said").textContent).toBe("No, two!");
});
