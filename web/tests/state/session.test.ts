import { Unreachable } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { api, isUnconfirmed, setToken, takeGivenToken, token } from "../../src/api/api";
import { SiblingTabs, type TabMessage } from "../../src/api/sibling-tabs";
import { device } from "../../src/offline/device";
import { confirmation, confirmed } from "../../src/state/confirmation";
import { keepDraft, readDraft, returnDraft } from "../../src/state/drafts";
import { modelState } from "../../src/state/models";
import { endSession, enterByCookie, isByCookie, loadSession, SESSIONS, signOut, session, signIn } from "../../src/state/session";
import { toast, toasts } from "../../src/ui/toasts";
import { respond } from "../draw";

let sibling: SiblingTabs;
let heard: TabMessage[];

/** The server knows tokens like `of-alice`. */
beforeEach(() => {
  setToken(null);
  session.set({ state: "asking" });
  heard = [];
  sibling = new SiblingTabs();
  sibling.listen((message) => heard.push(message));
  respond.mockImplementation(async (_, { headers }) => {
    const user = /^Bearer of-(\w+)$/.exec(new Headers(headers).get("Authorization") ?? "")?.[1];
    return user
      ? Response.json({ id: user, role: "user", installation: "a" })
      : Response.json({ error: { code: "UNAUTHENTICATED", message: "", requestId: "" } }, { status: 401 });
  });
});

afterEach(() => {
  sibling.close();
  setToken(null);
  session.set({ state: "asking" });
  isUnconfirmed.set(false);
  vi.restoreAllMocks();
});

const userId = () => {
  const now = session.get();
  return now.state === "in" ? now.me.id : now.state;
};

it("takes the sign-in of a tab that is open", async () => {
  sibling.listen(({ type }) => type === "asked" && sibling.post({ type: "signed-in", token: "of-alice" }));
  await loadSession();
  expect([userId(), token.get()]).toEqual(["alice", "of-alice"]);
});

it("asks for a sign-in where no tab has one, and takes one that comes later", async () => {
  await loadSession();
  expect([session.get(), heard]).toEqual([{ state: "out", refused: null }, [{ type: "asked" }]]);
  sibling.post({ type: "signed-in", token: "of-alice" });
  await vi.waitFor(() => expect(userId()).toBe("alice"));
});

it("says so when the user signs in, and answers those that ask", async () => {
  await signIn("of-alice");
  await vi.waitFor(() => expect(heard).toEqual([{ type: "signed-in", token: "of-alice" }]));
  sibling.post({ type: "asked" });
  await vi.waitFor(() => expect(heard).toHaveLength(2));
});

it("does not ask again with a token that was refused", async () => {
  await signIn("nonsense");
  expect([session.get(), heard]).toEqual([{ state: "out", refused: "token" }, []]);
});

it("takes a token from another tab while it needs none, and blames none when it needs one", async () => {
  const me = { id: "local", role: "admin", installation: "a" } as const;
  session.set({ state: "in", me });
  await expect(api.get("/api/agents")).rejects.toThrow();
  expect(session.get()).toEqual({ state: "out", refused: null });
  session.set({ state: "in", me });
  sibling.post({ type: "signed-in", token: "of-local" });
  await vi.waitFor(() => expect(token.get()).toBe("of-local"));
  expect(userId()).toBe("local");
});

it("signs out in all tabs of the user, and in nobody else's", async () => {
  await signIn("of-alice");
  sibling.post({ type: "signed-out", userId: "bob" });
  sibling.post({ type: "signed-out" } as unknown as TabMessage);
  sibling.post({ type: "signed-out", userId: "alice" });
  await vi.waitFor(() => expect(session.get()).toEqual({ state: "out", refused: null }));
  expect([token.get(), sessionStorage.length]).toEqual([null, 0]);
  await signIn("of-bob");
  signOut();
  await vi.waitFor(() => expect(heard.at(-1)).toEqual({ type: "signed-out", userId: "bob" }));
});

it("lets no late response to the last user sign out the next", async () => {
  await signIn("of-alice");
  let refuse = () => {};
  respond.mockImplementationOnce(
    () => new Promise((resolve) => (refuse = () => resolve(Response.json({ error: {} }, { status: 401 })))),
  );
  const late = api.get("/api/conversations");
  signOut();
  await signIn("of-bob");
  refuse();
  await expect(late).rejects.toThrow(Unreachable);
  expect(userId()).toBe("bob");
});

/** The server knows cookies, too, which no page can read. */
function signInByCookie(user: string | null) {
  respond.mockImplementation(async ({ pathname }, { method }) => {
    if (method === "DELETE") return new Response(null, { status: pathname.startsWith(SESSIONS) ? 204 : 404 });
    if (user === null) return Response.json({ error: {} }, { status: 401 });
    return Response.json({ id: user, role: "user", installation: "a" });
  });
}

it("tells the other tabs whom a cookie signs in, and hears it of them", async () => {
  signInByCookie("alice");
  await loadSession();
  expect([userId(), isByCookie()]).toEqual(["alice", true]);
  await vi.waitFor(() => expect(heard).toEqual([{ type: "session", userId: "alice" }]));
  signInByCookie("bob");
  sibling.post({ type: "session", userId: "bob" });
  await vi.waitFor(() => expect(userId()).toBe("bob"));
  signInByCookie("eve"); // here, while Bob was
  await enterByCookie();
  await vi.waitFor(() => expect(heard.at(-1)).toEqual({ type: "session", userId: "eve" }));
  // It takes no token of a tab that has one, and gives up none of its own.
  sibling.post({ type: "signed-in", token: "of-alice" });
  sibling.post({ type: "asked" });
  setToken("of-alice");
  sibling.post({ type: "session", userId: "carl" });
  const asked = respond.mock.calls.length;
  await new Promise((resume) => setTimeout(resume, 50));
  expect([respond.mock.calls.length, userId()]).toEqual([asked, "eve"]);
});

it("stays with who has signed in while it still asked the other tabs", async () => {
  const asking = loadSession();
  await vi.waitFor(() => expect(heard).toEqual([{ type: "asked" }]));
  signInByCookie("alice");
  await enterByCookie();
  await asking;
  expect(userId()).toBe("alice");
});

it("believes no response about the time before somebody signed in", async () => {
  let refuse = () => {};
  respond.mockImplementationOnce(() => new Promise((resolve) => (refuse = () => resolve(Response.json({ error: {} }, { status: 401 })))));
  const early = loadSession();
  signInByCookie("alice");
  await enterByCookie();
  refuse();
  await early;
  expect(userId()).toBe("alice");
});

it("has the server end the session that a cookie has, and stays signed in where it can’t", async () => {
  signInByCookie("alice");
  await loadSession();
  respond.mockImplementationOnce(async () => {
    throw new TypeError("offline");
  });
  await expect(endSession()).rejects.toThrow(Unreachable);
  expect(userId()).toBe("alice");
  await endSession();
  const [url, { method }] = respond.mock.calls.at(-1)!;
  expect([method, url.pathname]).toEqual(["DELETE", "/api/me/sessions/current"]);
});

it("says that a session has ended, which a cookie had", async () => {
  signInByCookie("alice");
  await loadSession();
  signInByCookie(null);
  await loadSession();
  expect(session.get()).toEqual({ state: "out", refused: "session" });
});

it.each([
  ["admin", "suspendedByAdmin"],
  ["provider", "suspendedByProvider"],
] as const)("says that the user was suspended by the %s, also after a reload", async (suspendedBy, refused) => {
  signInByCookie("alice");
  await loadSession();
  const error = { code: "UNAUTHENTICATED", message: "", requestId: "", details: { suspendedBy } };
  respond.mockImplementation(async () => Response.json({ error }, { status: 401 }));
  await expect(api.get("/api/agents")).rejects.toThrow();
  expect(session.get()).toEqual({ state: "out", refused });
  session.set({ state: "asking" });
  await loadSession();
  expect(session.get()).toEqual({ state: "out", refused });
});

it("shows the next user no late response to the last one, by cookies", async () => {
  signInByCookie("alice");
  await loadSession();
  let arrive = () => {};
  respond.mockImplementationOnce(() => new Promise((resolve) => (arrive = () => resolve(Response.json({ items: [] })))));
  const late = api.get("/api/conversations");
  signInByCookie("bob");
  await loadSession();
  arrive();
  await expect(late).rejects.toThrow(Unreachable);
  expect(userId()).toBe("bob");
});

it("leaves nothing over the page for the next user", async () => {
  await signIn("of-alice");
  toast("Deleted “Secret”.");
  const question = confirmed({ title: "Delete Secret?", text: "", action: "Delete" });
  signOut();
  expect([await question, confirmation.get(), toasts.get()]).toEqual([false, null, []]);
});

it("leaves nothing of one user where the server says that it is another one now", async () => {
  await signIn("of-alice");
  toast("Deleted “Secret”.");
  returnDraft("c1", "Alice’s");
  const states: string[] = [];
  const unsubscribe = session.subscribe(() => states.push(userId()));
  respond.mockImplementation(async () => Response.json({ id: "bob", role: "user", installation: "a" }));
  await loadSession();
  unsubscribe();
  expect([states, toasts.get(), readDraft("c1")]).toEqual([["asking", "bob"], [], ""]);
});

it("leaves the drafts that the next user has begun in another tab", async () => {
  await signIn("of-alice");
  keepDraft("c1", "Alice’s");
  // Another tab belongs to Bob already.
  localStorage.setItem("threadkeep.drafts-of", "bob");
  localStorage.setItem("threadkeep.draft.c2", "Bob’s");
  respond.mockImplementation(async () => Response.json({ id: "bob", role: "user", installation: "a" }));
  await loadSession();
  expect([readDraft("c1"), readDraft("c2")]).toEqual(["", "Bob’s"]);
});

it("shows the copies of the user that the device knows while the server is away, and asks nothing in their name", async () => {
  respond.mockImplementation(async () => {
    throw new TypeError("offline");
  });
  vi.spyOn(device, "owner").mockResolvedValue({ id: "alice", role: "user", installation: "a" });
  modelState.set("demonstration"); // as the kept page says, which may be old
  await loadSession();
  expect([userId(), isUnconfirmed.get(), modelState.get()]).toEqual(["alice", true, "connected"]);
  const asked = respond.mock.calls.length;
  await expect(api.get("/api/conversations")).rejects.toThrow(Unreachable);
  expect(respond).toHaveBeenCalledTimes(asked);
  // It is back, and somebody else is signed in by now.
  respond.mockImplementation(async () => Response.json({ id: "bob", role: "user", installation: "a" }));
  await loadSession();
  expect([userId(), isUnconfirmed.get()]).toEqual(["bob", false]);
});

it("does not show another user's copies to a tab with a sign-in of its own", async () => {
  await signIn("of-bob");
  session.set({ state: "asking" });
  respond.mockImplementation(async () => {
    throw new TypeError("offline");
  });
  vi.spyOn(device, "owner").mockResolvedValue({ id: "alice", role: "user", installation: "a" });
  await loadSession();
  expect(session.get()).toEqual({ state: "unreachable" });
});

it("deletes the copies when the user signs out, and when the server no longer accepts them", async () => {
  const clear = vi.spyOn(device, "clear").mockResolvedValue();
  await signIn("of-alice");
  signOut();
  await vi.waitFor(() => expect(clear).toHaveBeenCalled());
  localStorage.clear();
  clear.mockClear();
  await signIn("nonsense");
  await vi.waitFor(() => expect(clear).toHaveBeenCalled());
});

it("signs in and out, and deletes the copies, where the browser has no room left", async () => {
  const clear = vi.spyOn(device, "clear").mockResolvedValue();
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(function (this: Storage) {
    if (this === localStorage) throw new DOMException("full", "QuotaExceededError");
  });
  await signIn("of-alice");
  expect(userId()).toBe("alice");
  signOut();
  expect(userId()).toBe("out");
  await vi.waitFor(() => expect(clear).toHaveBeenCalled());
});

it.each(["nonsense", "of-bob"])("loses nothing to a link with a token that is not this user's: %s", async (given) => {
  const clear = vi.spyOn(device, "clear").mockResolvedValue();
  await signIn("of-alice");
  keepDraft("c1", "Alice’s");
  history.replaceState(null, "", `/#token=${given}`);
  expect(takeGivenToken(true)).toBe(true);
  await loadSession();
  expect([userId(), token.get(), readDraft("c1")]).toEqual(["alice", "of-alice", "Alice’s"]);
  expect(clear).not.toHaveBeenCalled();
});

it("takes the token of a link where nobody was before", async () => {
  history.replaceState(null, "", "/#token=of-alice");
  takeGivenToken(true);
  await loadSession();
  expect([userId(), token.get()]).toEqual(["alice", "of-alice"]);
});
