import { type InvitationView, type KnownUserView, type MeView } from "@threadkeep/client";
import { beforeEach, expect, it } from "vitest";

import { confirmation } from "../../src/state/confirmation";
import { session } from "../../src/state/session";
import { UsersPage } from "../../src/users/users-page";
import { click, draw, respond, seen, type as write } from "../draw";

const ADMIN = { id: "invited:root", name: "root", role: "admin" } as MeView;
const AT = "2026-11-19T10:00:00.000Z";
const LINK = "https://chat.example/#/invitation/secret";

let users: KnownUserView[];
let invitations: InvitationView[];
let canInvite: boolean;
/** What was sent: method, path and body. */
let sent: [string, string, unknown][];

beforeEach(() => {
  users = [
    { id: "invited:root", invited: true, name: "root", role: "admin", lastSeenAt: new Date().toISOString() },
    { id: "local", invited: false },
    { id: "okta|7", invited: false, name: "Bob", groups: ["staff", "it"], role: "user" },
  ];
  [invitations, canInvite, sent] = [[], true, []];
  respond.mockImplementation(async ({ pathname, searchParams }, { method, body }) => {
    if (method !== "GET") sent.push([method!, pathname, body ? JSON.parse(body as string) : null]);
    if (method === "DELETE" && pathname.startsWith("/api/users/")) return new Response(null, { status: 204 });
    if (method === "DELETE") {
      invitations = [];
      return new Response(null, { status: 204 });
    }
    if (pathname === "/api/sign-in") return Response.json({ ways: [{ name: "work", title: "Okta", url: "" }], invitations: canInvite, tokens: true });
    if (pathname === "/api/admin/invitations" && method === "POST") {
      const made: InvitationView = { id: "1", userId: "invited:ann", role: "user", createdAt: AT, expiresAt: AT, invitedBy: "invited:root" };
      invitations = [made];
      return Response.json({ ...made, url: LINK }, { status: 201 });
    }
    if (pathname === "/api/admin/invitations") return Response.json({ items: invitations, nextCursor: null });
    if (method === "POST") return Response.json({ ...users[2], ...(pathname.endsWith("/suspend") && { suspendedAt: AT }) });
    return Response.json({ items: users, nextCursor: searchParams.get("cursor") });
  });
});

it("says who there is, and lets nobody be kept out who can’t be", async () => {
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => expect(drawn.text).toContain("root You Administrator"));
  expect(drawn.text).toContain("last seen just now");
  expect(drawn.text).toContain("okta|7 · not seen with a browser or a key · groups: staff, it");
  expect([...drawn.place.querySelectorAll(".account-row button")].map((it) => it.getAttribute("aria-label"))).toEqual(["Delete root", "Suspend Bob", "Delete Bob"]);
});

it("suspends somebody after a question, and lets them back in", async () => {
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => drawn.named("Suspend Bob"));
  await click(drawn.named("Suspend Bob"));
  confirmation.get()!.answer(false);
  await click(drawn.named("Suspend Bob"));
  confirmation.get()!.answer(true);
  await seen(() => expect(drawn.text).toContain("Suspended since"));
  await click(drawn.named("Let Bob back in"));
  await seen(() => expect(drawn.text).not.toContain("Suspended since"));
  expect(sent.map(([, path]) => path)).toEqual(["/api/admin/users/okta%7C7/suspend", "/api/admin/users/okta%7C7/unsuspend"]);
});

it("deletes somebody once their name is typed", async () => {
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => drawn.named("Delete Bob"));
  await click(drawn.named("Delete Bob"));
  expect(confirmation.get()).toMatchObject({ title: "Delete Bob?", typed: { text: "Bob" } });
  confirmation.get()!.answer(false);
  await click(drawn.named("Delete Bob"));
  confirmation.get()!.answer(true);
  await seen(() => expect(drawn.allNamed("Delete Bob")).toEqual([]));
  expect(sent).toEqual([["DELETE", "/api/users/okta%7C7", null]]);
});

it("warns an administrator who deletes themselves, and signs them out", async () => {
  session.set({ state: "in", me: ADMIN });
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => drawn.named("Delete root"));
  await click(drawn.named("Delete root"));
  expect(confirmation.get()!.text).toContain("your own account");
  confirmation.get()!.answer(true);
  await seen(() => expect(session.get()).toEqual({ state: "out", refused: null }));
  expect(sent).toEqual([["DELETE", "/api/users/invited%3Aroot", null]]);
  session.set({ state: "asking" });
});

it("says how somebody becomes an administrator, by each way to sign in", async () => {
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => expect(drawn.text).toContain("threadkeep invite NAME --admin"));
  expect(drawn.text).toContain("With Okta: members of the provider’s group that admin_group names, in the table [sign_in.work]");
  expect(drawn.text).toContain("THREADKEEP_ADMIN_CLAIM");
});

it("makes a link, shows it once, and withdraws the invitation", async () => {
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => drawn.named("Invite somebody"));
  await click(drawn.named("Invite somebody"));
  await write(drawn.find<HTMLInputElement>("input"), " ann ");
  await click(drawn.named("Create link"));
  await seen(() => expect(drawn.text).toContain(LINK));
  expect(sent).toEqual([["POST", "/api/admin/invitations", { user: "ann", admin: false, ttlS: 86400 }]]);
  await click(drawn.named("Done"));
  expect(drawn.text).not.toContain(LINK);
  await seen(() => drawn.named("Withdraw the invitation for ann"));
  await click(drawn.named("Withdraw the invitation for ann"));
  await seen(() => expect(drawn.allNamed("Withdraw the invitation for ann")).toEqual([]));
});

it("says how to turn invitations on, and shows other users nothing", async () => {
  canInvite = false;
  const drawn = draw(<UsersPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => expect(drawn.text).toContain("THREADKEEP_INVITATIONS=on"));
  expect(drawn.allNamed("Invite somebody")).toEqual([]);
  respond.mockClear();
  drawn.again(<UsersPage me={{ ...ADMIN, role: "user" }} onMenu={() => {}} />);
  expect(drawn.text).toContain("Only an administrator can manage people.");
  expect(respond).not.toHaveBeenCalled();
});
