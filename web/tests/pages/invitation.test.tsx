import { type InvitationOfferView, type MeView, type SignInView } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it } from "vitest";

import { setToken, token } from "../../src/api/api";
import { Invitation } from "../../src/pages/invitation";
import { go, route } from "../../src/state/route";
import { session } from "../../src/state/session";
import { click, draw, respond, seen, undraw } from "../draw";

const OFFER: InvitationOfferView = { userId: "invited:ann", name: "ann", role: "user", endsSessions: true, expiresAt: "2026-11-20T12:00:00.000Z" };
const BOB: MeView = { id: "invited:bob", name: "bob", role: "user", installation: "a" };

const refuse = (status: number, code: string) => Response.json({ error: { code, message: code, requestId: "" } }, { status });

/** What was sent to accept it. */
let accepted: unknown[];
/** What the server says of the link, and whom the cookie signs in. */
let offer: () => Response;
let me: MeView | null;
/** The other ways to sign in. */
let ways: SignInView["ways"];

beforeEach(() => {
  [accepted, me, offer, ways] = [[], null, () => Response.json(OFFER), [{ name: "work", title: "Okta", url: "/x" }]];
  session.set({ state: "out", refused: null });
  go({ name: "invitation", token: "secret" });
  respond.mockImplementation(async ({ pathname }, { body }) => {
    if (pathname === "/api/sign-in/invitation") return offer();
    if (pathname === "/api/sign-in") return Response.json({ ways, invitations: true, tokens: true });
    if (pathname === "/api/me") return me ? Response.json(me) : refuse(401, "UNAUTHENTICATED");
    const { switch: switches, ...sent } = JSON.parse(body as string) as { switch: boolean; token: string };
    accepted.push({ ...sent, switches });
    if (me && !switches) return refuse(409, "OTHER_USER_SIGNED_IN");
    me = { ...BOB, id: OFFER.userId, name: OFFER.name };
    return Response.json({ id: OFFER.userId, role: "user" });
  });
});

afterEach(() => {
  undraw();
  setToken(null);
  session.set({ state: "asking" });
  history.replaceState(null, "", "/");
});

it("signs in only after a click, and leaves the address", async () => {
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => expect(drawn.text).toContain("This link signs you in as ann."));
  expect(accepted).toEqual([]);
  await click(drawn.named("Continue as ann"));
  await seen(() => expect(route.get()).toEqual({ name: "new", agentId: null }));
  expect(accepted).toEqual([{ token: "secret", switches: false }]);
  expect(session.get()).toEqual({ state: "in", me });
  expect(location.hash).toBe("#/");
});

it("says that a link which the user made themselves signs them out nowhere", async () => {
  offer = () => Response.json({ ...OFFER, endsSessions: false });
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => expect(drawn.text).toContain("Your other browsers stay signed in."));
  expect(drawn.text).not.toContain("will be signed out there");
});

it("asks before it signs somebody else out", async () => {
  me = BOB;
  session.set({ state: "in", me });
  offer = () => Response.json({ ...OFFER, signedInAs: BOB.id });
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => expect(drawn.text).toContain("This browser is signed in as bob."));
  expect(drawn.allNamed("Continue as ann")).toEqual([]);
  await click(drawn.named("Stay signed in as bob"));
  expect([accepted, session.get()]).toEqual([[], { state: "in", me: BOB }]);
  await click(drawn.named("Sign bob out and continue as ann"));
  await seen(() => expect(session.get()).toMatchObject({ me: { id: "invited:ann" } }));
  expect(accepted).toEqual([{ token: "secret", switches: true }]);
});

it("says so if somebody else has signed in since it was opened", async () => {
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => drawn.named("Continue as ann"));
  me = BOB;
  offer = () => Response.json({ ...OFFER, signedInAs: BOB.id });
  await click(drawn.named("Continue as ann"));
  await seen(() => expect(drawn.text).toContain("This browser is signed in as bob."));
});

it("signs in whom it is for where a tab has a developer’s token", async () => {
  setToken("of-bob");
  session.set({ state: "in", me: BOB });
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => drawn.named("Sign bob out and continue as ann"));
  await click(drawn.named("Sign bob out and continue as ann"));
  await seen(() => expect(session.get()).toMatchObject({ me: { id: "invited:ann" } }));
  expect(token.get()).toBeNull();
});

it("needs nothing of who is signed in already", async () => {
  me = { ...BOB, id: OFFER.userId };
  session.set({ state: "in", me });
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => expect(drawn.text).toContain("already signed in as ann"));
  await click(drawn.named("Open Threadkeep"));
  expect([accepted, route.get()]).toEqual([[], { name: "new", agentId: null }]);
});

it.each([
  [410, "INVITATION_ENDED", "used already, or has expired"],
  [404, "INVITATION_NOT_FOUND", "withdrawn or replaced"],
  [429, "RATE_LIMITED", "Try again in a minute"],
  [503, "STORAGE_UNAVAILABLE", "STORAGE_UNAVAILABLE"],
])("says why a link doesn’t work: %s %s", async (status, code, text) => {
  offer = () => refuse(status, code);
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => expect(drawn.find("[role=alert]").textContent).toContain(text));
  await seen(() => drawn.named("Sign in another way"));
  await click(drawn.named("Sign in another way"));
  expect(route.get()).toEqual({ name: "new", agentId: null });
});

it("offers no other way where there is none, and says whom to ask", async () => {
  [ways, offer] = [[], () => refuse(410, "INVITATION_ENDED")];
  const drawn = draw(<Invitation token="secret" />);
  await seen(() => expect(drawn.find("[role=alert]").textContent).toContain("Ask the person who invited you for a new link"));
  await seen(() => expect(respond.mock.calls.map(([{ pathname }]) => pathname)).toContain("/api/sign-in"));
  expect(drawn.place.querySelectorAll(".choices button")).toHaveLength(0);
});
