/** The page's layers, as README.md lists them: who imports whom, with types and with parts that load later. */

import { parseSync } from "vite";
import { expect, it } from "vitest";

import readme from "../README.md?raw";

const SOURCES = Object.fromEntries(
  Object.entries(
    import.meta.glob<string>(["../src/**/*.{ts,tsx}", "../packages/*/src/**/*.{ts,tsx}"], { query: "?raw", import: "default", eager: true }),
  ).map(([path, text]) => [path.replace("../", ""), text]),
);

/** Each line is a layer, the lowest last; each folder imports only from those below it and to its right. */
const FOLDERS = /^```layers\n([^`]+)/m.exec(readme)![1]!.trim().split(/\s+/).reverse();

/** Programs of their own, which act when they are loaded. */
const PROGRAMS = ["src/main.tsx", "src/markdown/colouring/worker.ts", "src/offline/worker/service-worker.ts", "src/previews/sandbox/inside.ts"];

/** What only says what there is. */
const DECLARES = /^(Import|Export|TS|Function|Class|Variable).*Declaration$/;

const IMPORT = /\b(?:from|import|URL)\s*\(?\s*"(\.[^"?]+)/g;

function importsOf(file: string): string[] {
  const found = [...SOURCES[file]!.matchAll(IMPORT)].map(([, path]) => new URL(path!, `file:///${file}`).pathname.slice(1));
  return found.flatMap((path) => ["", ".ts", ".tsx", "/index.ts"].map((ending) => path + ending).find((it) => it in SOURCES) ?? []);
}

const folderOf = (file: string) => file.split("/")[1]!;

it("has a place for each folder", () => {
  const folders = Object.keys(SOURCES).filter((it) => /^src\/.+\//.test(it)).map(folderOf);
  expect([...new Set(folders)].toSorted()).toEqual(FOLDERS.toSorted());
});

it("imports only from below", () => {
  const files = Object.keys(SOURCES).filter((it) => it.startsWith("src/") && it !== "src/main.tsx");
  const isAbove = (one: string, other: string) => FOLDERS.indexOf(folderOf(one)) > FOLDERS.indexOf(folderOf(other));
  const wrong = files.flatMap((file) => importsOf(file).filter((it) => isAbove(it, file)).map((it) => `${file} imports ${it}, which is above it`));
  expect(wrong).toEqual([]);
});

it("has no circles", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const walk = (file: string, way: readonly string[]) => {
    if (way.includes(file)) return void circles.push([...way.slice(way.indexOf(file)), file].join(" → "));
    if (done.has(file)) return;
    for (const it of importsOf(file)) walk(it, [...way, file]);
    done.add(file);
  };
  for (const file of Object.keys(SOURCES)) walk(file, []);
  expect(circles).toEqual([]);
});

it("does nothing when a module is imported", () => {
  const modules = Object.keys(SOURCES).filter((it) => it.startsWith("src/") && !PROGRAMS.includes(it));
  const acts = modules.flatMap((file) => {
    const text = SOURCES[file]!;
    const statements = parseSync(file, text).program.body.filter(({ type }) => !DECLARES.test(type));
    return statements.map(({ start }) => `${file}: ${text.slice(start).split("\n")[0]}`);
  });
  expect(acts).toEqual([]);
});
