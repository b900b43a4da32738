import { beforeEach, expect, it } from "vitest";

import { setToken, takeGivenToken, token } from "../../src/api/api";

beforeEach(() => {
  setToken(null);
  history.replaceState(null, "", "/page?x=1");
});

it("keeps the token that the address brings, and clears the address", () => {
  const entries = history.length;
  history.replaceState(null, "", "/page?x=1#token=a-B_c.~9");
  takeGivenToken(true);
  expect(token.get()).toBe("a-B_c.~9");
  expect(location.pathname + location.search + location.hash).toBe("/page?x=1");
  expect(history.length).toBe(entries);
});

it("leaves every other address alone", () => {
  for (const hash of ["#/c/1", "#token=", "#token=a b", "#/token=abc"]) {
    history.replaceState(null, "", `/page${hash}`);
    takeGivenToken(true);
    expect(token.get()).toBeNull();
  }
});

it("takes none where people sign in, nor on a share's page, and clears the address all the same", () => {
  setToken("mine");
  history.replaceState(null, "", "/page#token=stranger");
  expect(takeGivenToken()).toBe(false);
  expect([token.get(), location.hash]).toEqual(["mine", ""]);
});
