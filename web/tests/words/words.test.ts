import { expect, it } from "vitest";

import { agentWords } from "../../src/words/agents";
import { en } from "../../src/words/en";
import { bytes, dayGroup, duration } from "../../src/words/format";
import { gatewayWords } from "../../src/words/gateways";
import { requestWords } from "../../src/words/requests";
import { sourceWords } from "../../src/words/sources";
import { turnWords } from "../../src/words/turn";
import { usageWords } from "../../src/words/usage";
import { zh } from "../../src/words/zh";

const sources = Object.values(
  import.meta.glob<string>(["../../src/**/*.{ts,tsx}", "!../../src/words/{agents,en,zh,gateways,requests,turn,sources,usage}.ts"], { eager: true, query: "?raw", import: "default" }),
).join("\n");

it("has no word that nobody says", () => {
  const groups = ["pinned", "today", "yesterday", "lastWeek", "lastMonth", "older"]; // named by their group
  const unsaid = Object.keys(en).filter((it) => !new RegExp(`words\\.${it}\\b`).test(sources) && !groups.includes(it));
  expect(unsaid).toEqual([]);
});

it("has no word of what is loaded later that nobody says", () => {
  const later = { requestWords, turnWords, sourceWords, gatewayWords, agentWords, usageWords };
  const all = Object.entries(later).flatMap(([name, { en }]) => Object.keys(en).map((it) => `${name}.${it}`));
  expect(all.filter((it) => !new RegExp(`${it}\\b`).test(sources))).toEqual([]);
});

it.each([
  ["everything", en, zh],
  ["a request", requestWords.en, requestWords.zh],
  ["a turn's details", turnWords.en, turnWords.zh],
  ["a source", sourceWords.en, sourceWords.zh],
  ["gateways", gatewayWords.en, gatewayWords.zh],
  ["agents", agentWords.en, agentWords.zh],
  ["usage", usageWords.en, usageWords.zh],
])("says %s in Chinese, too", (_, english: Record<string, unknown>, chinese: Record<string, unknown>) => {
  expect(Object.keys(english).filter((it) => typeof english[it] === "string" && english[it] === chinese[it])).toEqual([]);
});

it.each([
  ["2026-03-10T00:00:00", "today"],
  ["2026-03-10T15:00:00", "today"],
  ["2026-03-09T23:59:00", "yesterday"],
  ["2026-03-04T12:00:00", "lastWeek"],
  ["2026-02-15T12:00:00", "lastMonth"],
  ["2025-03-10T12:00:00", "older"],
])("puts %s under %s", (time, group) => {
  const now = new Date("2026-03-10T12:00:00");
  expect(dayGroup(new Date(time).toISOString(), now)).toBe(group);
});

it("writes durations and sizes as people read them", () => {
  expect([duration(12), duration(1234), duration(61_000)]).toEqual(["12 ms", "1.2 s", "1 min 1 s"]);
  expect([bytes(12), bytes(2048), bytes(5 * 1024 * 1024)]).toEqual(["12 B", "2.0 KB", "5.0 MB"]);
});
