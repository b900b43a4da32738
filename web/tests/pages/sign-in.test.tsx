import { type SignInView } from "@threadkeep/client";
import { afterEach, expect, it } from "vitest";

import { SignIn } from "../../src/pages/sign-in";
import { draw, respond, seen } from "../draw";

const OKTA = { name: "okta", title: "Okta", url: "/oauth/sign-in/okta/start" };
const NOTHING: SignInView = { ways: [], invitations: false, tokens: false };

const offer = (view: Partial<SignInView>) => respond.mockImplementation(async () => Response.json({ ...NOTHING, ...view }));

afterEach(() => {
  history.replaceState(null, "", "/");
  delete document.documentElement.dataset["embedded"];
});

it("offers a button for each provider, which returns to where the user is", async () => {
  history.replaceState(null, "", "/#/c/12");
  offer({ ways: [OKTA, { name: "google", title: "Google", url: "/oauth/sign-in/google/start" }], tokens: true, invitations: true });
  const drawn = draw(<SignIn refused={null} />);
  await seen(() => expect(drawn.text).toContain("Continue with Google"));
  const link = drawn.find<HTMLAnchorElement>("a.button");
  expect(link.textContent).toBe("Continue with Okta");
  expect([link.pathname, new URL(link.href).searchParams.get("next")]).toEqual(["/oauth/sign-in/okta/start", "/#/c/12"]);
  expect(drawn.text).toContain("Have an invitation?");
  expect(drawn.find<HTMLDetailsElement>("details").open).toBe(false);
});

it("asks for an invitation where people can sign in with nothing else", async () => {
  offer({ invitations: true });
  const drawn = draw(<SignIn refused="session" />);
  await seen(() => expect(drawn.text).toContain("You need an invitation"));
  expect(drawn.text).toContain("You were signed out");
  expect(drawn.place.querySelector("input[type=password]")).toBeNull();
});

it.each([
  ["suspendedByAdmin", "Only an administrator can lift this"],
  ["suspendedByProvider", "Sign in with it again"],
] as const)("says that the account is suspended, and what lifts that: %s", async (refused, text) => {
  offer({ ways: [OKTA], invitations: true });
  const drawn = draw(<SignIn refused={refused} />);
  await seen(() => drawn.find("a.button"));
  expect(drawn.find("[role=alert]").textContent).toContain("Your account is suspended");
  expect(drawn.find("[role=alert]").textContent).toContain(text);
  // A new link would let in nobody whom an administrator keeps out.
  expect(drawn.text.includes("Have an invitation?")).toBe(refused === "suspendedByProvider");
});

it("says where a token comes from where there is nothing else", async () => {
  offer({ tokens: true });
  const drawn = draw(<SignIn refused="token" />);
  await seen(() => expect(drawn.text).toContain("threadkeep token --user NAME"));
  expect(drawn.find("[role=alert]").textContent).toBe("This token is invalid or has expired.");
});

it.each([
  ["problem=expired&provider=okta", "Start again."],
  ["problem=other_provider", "Another provider responded"],
  ["problem=denied&provider=okta", "Okta or you declined"],
  ["problem=unreachable&provider=okta", "Can’t reach Okta"],
  ["problem=invalid&provider=okta", "The response of Okta isn’t valid"],
  ["problem=not_allowed&provider=okta", "Your account at Okta"],
  ["problem=no_email&provider=unknown", "The provider doesn’t confirm"],
  ["problem=suspended", "suspended your account"],
  ["problem=toString&provider=%3Cb%3E", "Signing in with the provider didn’t work"],
])("says why signing in with a provider came to nothing: %s", async (given, text) => {
  history.replaceState(null, "", `/#/sign-in?${given}`);
  offer({ ways: [OKTA] });
  const drawn = draw(<SignIn refused={null} />);
  await seen(() => expect(drawn.find("[role=alert]").textContent).toContain(text));
  // Nobody returns to the problem.
  expect(new URL(drawn.find<HTMLAnchorElement>("a.button").href).searchParams.get("next")).toBe("/");
});

it("leaves signing in to the application that it is part of", () => {
  document.documentElement.dataset["embedded"] = "True";
  const drawn = draw(<SignIn refused={null} />);
  expect(drawn.text).toContain("Sign in to the application first");
  expect(respond).not.toHaveBeenCalled();
});
