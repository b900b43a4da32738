import { type SessionView } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it } from "vitest";

import { SessionsSection } from "../../src/pages/sessions-section";
import { confirmation } from "../../src/state/confirmation";
import { session } from "../../src/state/session";
import { click, draw, respond, seen, undraw } from "../draw";

const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
const PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 Version/18.6 Mobile/15E148 Safari/604.1";
const now = new Date().toISOString();
const OF = { createdAt: "2026-11-01T10:00:00.000Z", lastUsedAt: now, endsAt: "2026-12-01T10:00:00.000Z" };

const LINK = "https://chat.example/#/invitation/secret";

let sessions: SessionView[];
let asked: string[];

beforeEach(() => {
  session.set({ state: "in", me: { id: "invited:ann", role: "user", installation: "a" } });
  sessions = [
    { id: "1", device: FIREFOX, way: "invitation", current: true, ...OF },
    { id: "2", device: PHONE, way: "oidc:okta", current: false, ...OF, lastUsedAt: "2026-11-02T10:00:00.000Z" },
  ];
  asked = [];
  respond.mockImplementation(async ({ pathname }, { method }) => {
    if (pathname === "/api/sign-in") return Response.json({ ways: [{ name: "okta", title: "Northwind", url: "/x" }], invitations: true, tokens: true });
    if (method === "GET") return Response.json({ items: sessions, nextCursor: null });
    asked.push(pathname);
    if (method === "POST") return Response.json({ url: LINK, expiresAt: now }, { status: 201 });
    sessions = sessions.filter(({ id }) => !pathname.endsWith(`/${id}`));
    return new Response(null, { status: 204 });
  });
});

afterEach(() => {
  undraw();
  session.set({ state: "asking" });
});

it("shows where the user is signed in, and signs out elsewhere", async () => {
  const drawn = draw(<SessionsSection />);
  await seen(() => expect(drawn.text).toContain("Firefox on Linux This browser"));
  expect(drawn.text).toContain("Signed in with Northwind · since");
  await click(drawn.named("Sign out Safari on iPhone"));
  await seen(() => expect(drawn.text).not.toContain("iPhone"));
  expect([asked, session.get().state]).toEqual([["/api/me/sessions/2"], "in"]);
});

it("signs out here, and everywhere after a question", async () => {
  const drawn = draw(<SessionsSection />);
  await seen(() => drawn.named("Sign out Firefox on Linux"));
  await click(drawn.named("Sign out everywhere"));
  confirmation.get()!.answer(true);
  await seen(() => expect(session.get().state).toBe("out"));
  expect(asked).toEqual(["/api/me/sessions"]);
});

it("makes a link for another device, shows it once, and lists what signed in with it", async () => {
  const drawn = draw(<SessionsSection />);
  await seen(() => drawn.named("Sign in on another device"));
  await click(drawn.named("Sign in on another device"));
  await seen(() => expect(drawn.text).toContain(LINK));
  expect(asked).toEqual(["/api/me/sessions/links"]);
  sessions.push({ id: "3", device: PHONE, way: "invitation", current: false, ...OF });
  await click(drawn.named("Done"));
  await seen(() => expect(drawn.allNamed("Sign out Safari on iPhone")).toHaveLength(2));
  expect(drawn.text).not.toContain(LINK);
});

it("makes no link for who has a provider, which lets them in anywhere", async () => {
  sessions[0] = { ...sessions[0]!, way: "oidc:okta" };
  const drawn = draw(<SessionsSection />);
  await seen(() => drawn.named("Sign out everywhere"));
  expect(drawn.allNamed("Sign in on another device")).toEqual([]);
});

it("shows nothing to who has no session", async () => {
  sessions = [];
  const drawn = draw(<SessionsSection />);
  await seen(() => expect(respond).toHaveBeenCalled());
  expect(drawn.text).toBe("");
});
