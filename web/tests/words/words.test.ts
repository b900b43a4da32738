import { expect, it } from "vitest";

import { en } from "../../src/words/en";
import { bytes, dayGroup, duration } from "../../src/words/format";
import { zh } from "../../src/words/zh";

type Words = Record<string, unknown>;

const sources = Object.values(
  import.meta.glob<string>(["../../src/**/*.{ts,tsx}", "!../../src/words/*.ts", "../../src/words/format.ts"], { eager: true, query: "?raw", import: "default" }),
).join("\n");

/** What is loaded later, as `requestWords`: every file of words that has both languages. */
const later = Object.values(import.meta.glob<Record<string, { en: Words; zh: Words }>>("../../src/words/*.ts", { eager: true }))
  .flatMap((it) => Object.entries(it))
  .filter(([name, it]) => name.endsWith("Words") && "zh" in it);

it("has no word that nobody says", () => {
  const groups = ["pinned", "today", "yesterday", "lastWeek", "lastMonth", "older"]; // named by their group
  const unsaid = Object.keys(en).filter((it) => !new RegExp(`words\\.${it}\\b`).test(sources) && !groups.includes(it));
  expect(unsaid).toEqual([]);
});

it("has no word of what is loaded later that nobody says", () => {
  const codes = ["faultWords", "stageWords"]; // named by their code or state
  const all = later.filter(([name]) => !codes.includes(name)).flatMap(([name, { en }]) => Object.keys(en).map((it) => `${name}.${it}`));
  expect(all.filter((it) => !new RegExp(`${it}\\b`).test(sources))).toEqual([]);
});

it.each<[string, Words, Words]>([["words", en, zh], ...later.map(([name, { en, zh }]): [string, Words, Words] => [name, en, zh])])(
  "has %s in Chinese, too",
  (_, english, chinese) => {
    expect(Object.keys(english).filter((it) => typeof english[it] === "string" && english[it] === chinese[it])).toEqual([]);
  },
);

/** Every text below a word, by its path; what a function says, it says of twos, unless it wants a list. */
function texts(word: unknown, path = ""): [string, string][] {
  if (typeof word === "string") return [[path, word]];
  if (typeof word === "function") {
    try {
      return texts((word as (...of: unknown[]) => unknown)(...Array.from({ length: 4 }, () => "2")), path);
    } catch {
      return [];
    }
  }
  return typeof word === "object" && word ? Object.entries(word).flatMap(([name, it]) => texts(it, `${path}.${name}`)) : [];
}

it.each<[string, Words, Words]>([["words", en, zh], ...later.map(([name, { en, zh }]): [string, Words, Words] => [name, en, zh])])(
  "ends a sentence of %s in both languages",
  (_, english, chinese) => {
    const inChinese = new Map(texts(chinese));
    const unlike = texts(english).filter(([path, text]) => text.endsWith(".") !== (inChinese.get(path) ?? "").endsWith("。"));
    expect(unlike.map(([path, text]) => `${path}: ${text} / ${inChinese.get(path)}`)).toEqual([]);
  },
);

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
