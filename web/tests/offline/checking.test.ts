import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { checkCopies } from "../../src/offline/checking";
import { device } from "../../src/offline/device";
import { respond } from "../draw";

const dropped: string[] = [];
const asked: string[] = [];
/** What the server lists, latest activity first, and what it has besides. */
let listed: string[] = [];
const { signal } = new AbortController();

beforeEach(() => {
  dropped.length = asked.length = 0;
  vi.spyOn(device, "drop").mockImplementation(async (path) => void dropped.push(path));
  respond.mockImplementation(async ({ pathname, searchParams }) => {
    asked.push(pathname);
    const id = pathname.split("/")[3];
    if (id) return listed.includes(id) ? Response.json({ id, status: "archived" }) : Response.json({ error: { code: "CONVERSATION_NOT_FOUND" } }, { status: 404 });
    const from = Number(searchParams.get("cursor") ?? 0);
    const end = from + Number(searchParams.get("limit"));
    return Response.json({ items: listed.slice(from, end).map((it) => ({ id: it })), nextCursor: end < listed.length ? `${end}` : null });
  });
});
afterEach(() => vi.restoreAllMocks());

function copied(...ids: string[]): void {
  const paths = ["/api/agents", ...ids.map((it) => `/api/conversations/${it}`)];
  vi.spyOn(device, "all").mockResolvedValue(paths.map((path) => ({ path, at: 0, size: 1 })));
}

it("drops what the server no longer has, and asks for nothing else", async () => {
  listed = ["a", "b"];
  copied("a", "gone", "b");
  await checkCopies(signal);
  expect(dropped).toEqual(["/api/conversations/gone"]);
  expect(asked).toEqual(["/api/conversations", "/api/conversations/gone"]);
});

it("reads the list only as far as it needs to", async () => {
  listed = Array.from({ length: 1000 }, (_, at) => `c${at}`);
  copied("c150");
  await checkCopies(signal);
  expect([dropped, asked.length]).toEqual([[], 2]);
});

it("asks for those that are far down in a long list", async () => {
  listed = Array.from({ length: 1000 }, (_, at) => `c${at}`);
  copied("c3", "c900", "gone");
  await checkCopies(signal);
  expect(dropped).toEqual(["/api/conversations/gone"]);
  expect(asked.slice(5)).toEqual(["/api/conversations/c900", "/api/conversations/gone"]);
});

it("drops nothing while the server is away, and asks nothing where there are no copies", async () => {
  copied();
  await checkCopies(signal);
  expect(asked).toEqual([]);
  copied("a");
  respond.mockRejectedValue(new TypeError("away"));
  await expect(checkCopies(signal)).rejects.toThrow();
  expect(dropped).toEqual([]);
});
