import { type MeView } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

const { dataset } = document.documentElement;
const me = (installation: string | undefined) => ({ id: "local", role: "admin", installation }) as MeView;

/** The page as a server with this id gives it. */
async function pageOf(id: string) {
  vi.resetModules();
  dataset["installation"] = id;
  const [{ adoptKept, checkInstallation }, drafts] = [await import("../../src/api/installation"), await import("../../src/state/drafts")];
  adoptKept();
  return { checkInstallation, ...drafts };
}

beforeEach(() => localStorage.clear());

afterEach(() => {
  delete dataset["installation"];
  localStorage.clear();
  sessionStorage.clear();
  vi.restoreAllMocks();
  vi.resetModules();
});

it("shows what was written for a server to no other one at the same address, and keeps it", async () => {
  (await pageOf("a")).returnDraft("new.", "for A");
  const other = await pageOf("b");
  expect([other.readDraft("new."), other.draftKeys()]).toEqual(["", []]);
  other.returnDraft("new.", "for B");
  other.forgetDrafts(); // its user signs out
  expect((await pageOf("a")).readDraft("new.")).toBe("for A");
});

it("loses nothing that an earlier version kept", async () => {
  localStorage.setItem("threadkeep.draft.new.", "first line\nsecond");
  localStorage.setItem("threadkeep.drafts-of", "local");
  localStorage.setItem("threadkeep.theme", "dark");
  const { readDraft } = await pageOf("a");
  expect(readDraft("new.")).toBe("first line\nsecond");
  expect(Object.keys(localStorage).toSorted()).toEqual(["threadkeep.a.draft.new.", "threadkeep.a.drafts-of", "threadkeep.theme"]);
});

it("gives way to the page of another server, once in a while", async () => {
  const reload = vi.spyOn(location, "reload").mockImplementation(() => {});
  const { checkInstallation } = await pageOf("a");
  checkInstallation(me("a"));
  checkInstallation(me(undefined)); // a server of an earlier version, which still runs
  expect(reload).not.toHaveBeenCalled();
  for (let attempt = 0; attempt < 3; attempt++) expect(() => checkInstallation(me("b"))).toThrow("another server");
  expect(reload).toHaveBeenCalledTimes(1);
});
