import { type PartOf } from "@threadkeep/client";
import { expect, it } from "vitest";

import { faultsOf, isWaitingForUser, lastLine, latest, outcomeOf, spentMs, summary, tookOf } from "../../src/turn/activity";
import { unreachableServers } from "../../src/turn/notices";
import { type Step } from "../../src/turn/segments";
import { en } from "../../src/words/en";
import { zh } from "../../src/words/zh";

type Call = PartOf<"tool_call">;

const thought = (text: string, durationMs = 0): Step => ({ type: "thought", text, startedAt: "2026-01-01T00:00:00.000Z", durationMs, iteration: 1 });
const search = (query: string): Step => ({ type: "retrieval", query, hits: [], iteration: 1 });
const call = (toolName: string, more: Partial<Call> = {}): Call => ({
  type: "tool_call",
  toolCallId: toolName,
  toolName,
  server: "s",
  arguments: {},
  status: "ok",
  result: null,
  durationMs: 0,
  iteration: 1,
  ...more,
});
const step = (name: string, more: Partial<PartOf<"step">> = {}): Step => ({
  type: "step",
  stepId: name,
  name,
  title: null,
  status: "ok",
  startedAt: "2026-01-01T00:00:00.000Z",
  durationMs: 700,
  iteration: 1,
  ...more,
});
const busy: Step = { type: "notice", code: "MODEL_RETRIED", message: "busy", iteration: 1 };
const now = { waiting: new Set<string>(), progress: undefined };

it.each<[string, Step[], string, string]>([
  ["a thought", [thought("Hm.", 3200)], "Thought for 3 s", "思考了 3 秒"],
  ["a short thought", [thought("Hm.", 7)], "Thought", "已思考"],
  ["a thought before a tool", [thought("Hm.", 3200), call("get_sales")], "Ran `get_sales`", "运行了 `get_sales`"],
  ["a search and tools", [search("growth"), call("sales"), call("sales"), call("read")], "Searched for “growth”, ran `sales` ×2, `read`", "搜索了“growth”、运行了 `sales` ×2、`read`"],
  ["our own tools", [call("search_documents"), call("promptx_recall"), call("search_documents")], "Searched documents ×2, checked memory", "检索了文档 ×2、查阅了记忆"],
  ["searches with a query", ["growth", "prices", "stock"].map((query) => call("search_documents", { arguments: { query } })), "Searched documents: growth, prices and 1 more", "检索了文档：growth、prices 等 3 个"],
  ["two memories", ["tea", "Lyon"].map((content) => call("promptx_remember", { arguments: { content } })), "Saved to memory ×2", "更新了记忆 ×2"],
  ["a call that the user denied", [call("read"), call("send_mail", { status: "denied", approval: { requestId: "r", message: "", expiresAt: "", action: "deny" } })], "Ran `read`, denied `send_mail`", "运行了 `read`、已拒绝 `send_mail`"],
  ["a call that a rule denied", [call("send_mail", { status: "denied" })], "Wasn’t allowed to run `send_mail`", "未获准运行 `send_mail`"],
  ["a call that nobody decided about", [call("send_mail", { status: "denied", approval: { requestId: "r", message: "", expiresAt: "", action: "expire" } })], "Didn’t run `send_mail`", "未运行 `send_mail`"],
  ["one call", [call("weather", { arguments: { days: 3, place: "Oslo" } })], "Ran `weather`: 3", "运行了 `weather`：3"],
  ["calls of one tool", ["Oslo", "Lima", "Bonn", "Rome", "Cairo", "Quito"].map((place) => call("weather", { arguments: { unit: "C", place } })), "Ran `weather`: Oslo, Lima and 4 more", "运行了 `weather`：Oslo、Lima 等 6 个"],
  ["an argument with marks", [call("run", { arguments: { command: "echo `date`\n\u202e now" } })], "Ran `run`: echo 'date' now", "运行了 `run`：echo 'date' now"],
  ["steps with titles", [step("find_order", { title: "Looked up the order" }), step("refund", { title: "refunded `120` €" })], "Looked up the order · Refunded '120' €", "Looked up the order · Refunded '120' €"],
  ["steps without titles", [step("find"), step("find", { stepId: "2" }), step("refund")], "Ran `find` ×2 · Ran `refund`", "运行了 `find` ×2 · 运行了 `refund`"],
  ["a step that ran an agent", [step("billing", { title: "Asked billing" }), step("charge", { parentId: "billing" })], "Asked billing", "Asked billing"],
  ["an agent that another one ran", [step("b", { agent: "Billing" }), step("charge", { parentId: "b" }), call("mail", { parentId: "b" })], "Asked Billing", "询问了 Billing"],
  ["a step and a tool", [step("find", { title: "Looked up the order" }), call("mail")], "Looked up the order · Ran `mail`", "Looked up the order · 运行了 `mail`"],
  ["many tools", ["a", "b", "c", "d", "e"].map((name) => call(name)), "Ran `a`, `b`, `c` and 2 more", "运行了 `a`、`b`、`c` 等 5 个"],
])("tells what was done: %s", (_, steps, english, chinese) => {
  expect([summary(en, steps), summary(zh, steps)]).toEqual([english, chinese]);
});

it("counts calls made together once, and tells what did not work", () => {
  const steps = [call("a", { durationMs: 3000 }), call("b", { durationMs: 2000, status: "error" }), call("c", { durationMs: 1000, iteration: 2 })];
  expect(spentMs(steps)).toBe(4000);
  expect([tookOf(en, steps), faultsOf(en, steps).faults]).toEqual(["4.0 s", "1 failed"]);
  expect(faultsOf(en, [call("a", { status: "timeout" })]).faults).toBe("timed out");
  expect(faultsOf(en, [call("a", { status: "denied" })]).faults).toBe("");
  expect(tookOf(en, [thought("Hm.", 3200)])).toBe("");
});

it("tells how the request about the only call ended", () => {
  const asked = (more: object, status: Call["status"] = "ok") => call("a", { status, approval: { requestId: "r", message: "", expiresAt: "", ...more } });
  expect(outcomeOf(en, [asked({ action: "allow", scope: "conversation" })])).toBe("allowed for this conversation");
  expect(outcomeOf(en, [asked({ action: "edit" })])).toBe("allowed with changes");
  expect(outcomeOf(en, [asked({}, "denied")])).toBe("not answered");
  expect(outcomeOf(en, [asked({ action: "deny" }, "denied")])).toBe(""); // the summary says so
  expect(outcomeOf(en, [call("b")])).toBe("");
  expect(outcomeOf(en, [asked({ action: "allow" }), call("b")])).toBe("");
});

it("tells what happens now", () => {
  const running = call("draw", { status: "running", durationMs: null });
  const progress = { draw: { progress: 3, total: 4, message: "nearly" } };
  expect(latest(en, [thought("One. Two")], now)).toBe("Two");
  expect(latest(en, [running, call("note", { iteration: 0 })], now)).toBe("Running `draw`");
  expect(latest(en, [running, call("note")], now)).toBe("Running `draw`, `note` · 1 of 2 done");
  expect(latest(en, [running], { ...now, progress })).toBe("Running `draw` · nearly");
  expect(latest(en, [running], { ...now, progress: { draw: { progress: 3, total: 4 } } })).toBe("Running `draw` · 3 of 4");
  expect(latest(en, [running], { ...now, waiting: new Set(["draw"]) })).toBe("Waiting for you · `draw`");
  expect(latest(en, [call("draw")], now)).toBe("Thinking…");
  expect(latest(en, [call("draw"), busy], now)).toBe("Retrying…");
});

it.each([
  ["First this.\n\n**Then** `that", "Then that"],
  ["先看数据。再算增长", "再算增长"],
  ["Version 3.5 is out. ", "Version 3.5 is out."],
  ["\n", ""],
])("takes the last line or sentence of a thought: %j", (text, line) => {
  expect(lastLine(text)).toBe(line);
});

it("names every server that is away once", () => {
  const notice = (message: string, code = "MCP_SERVER_UNAVAILABLE") => ({ type: "notice" as const, code, message, iteration: 0 });
  const told = unreachableServers([
    notice("mail is away: connection refused"),
    notice("Couldn’t connect to crm; continuing without it."),
    notice("mail is away: connection refused"),
    notice("A tool was left out.", "TOO_MANY_TOOLS"),
  ]);
  expect(told.unreachable.map((it) => it.name)).toEqual(["mail", "crm"]);
  expect(told.unreachable[0]!.reason).toBe("connection refused");
  expect(told.others).toEqual(["A tool was left out."]);
});

it("says what a program does now: the step that began last, unless its user is waited for", () => {
  const billing = step("billing", { title: "Asking billing", status: "running" });
  expect(latest(en, [billing], now)).toBe("Asking billing");
  expect(latest(en, [billing, step("charge", { parentId: "billing", status: "running" })], now)).toBe("Running `charge`");
  const asking = call("mail", { status: "running", approval: { requestId: "r", message: "", expiresAt: "" } });
  const waiting = new Set(["mail"]);
  expect(isWaitingForUser([billing, asking], waiting)).toBe(true);
  expect(latest(en, [billing, asking], { ...now, waiting })).toBe("Waiting for you · `mail`");
});

it("says which agent is asked now", () => {
  const asked = step("b", { agent: "Billing", status: "running" });
  expect([latest(en, [asked], now), latest(zh, [asked], now)]).toEqual(["Asking Billing", "正在询问 Billing"]);
});

it("counts steps that ran at the same time once", () => {
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`;
  const steps = [
    step("a", { startedAt: at(1), durationMs: 2000 }),
    step("b", { startedAt: at(2), durationMs: 500 }),
    step("c", { startedAt: at(2), durationMs: 2000 }),
    step("d", { startedAt: at(6), durationMs: 400 }),
  ];
  expect(spentMs(steps)).toBe(3400);
  expect(tookOf(en, steps)).toBe("3.4 s");
});

it("tells steps that failed from those of which nobody knows", () => {
  const unknown = [step("a"), step("refund", { status: "unknown" })];
  expect(faultsOf(en, unknown)).toEqual({ faults: "1 outcome unknown", isUnknown: true });
  const failed = [...unknown, step("b", { status: "error" })];
  expect(faultsOf(zh, failed)).toEqual({ faults: "1 个结果未知 · 1 个失败", isUnknown: false });
});
