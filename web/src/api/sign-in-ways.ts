/** How people can sign in to this server. */

import { type SignInView } from "@threadkeep/client";

import { api } from "./api";

export function readSignIn(signal?: AbortSignal): Promise<SignInView> {
  return api.get<SignInView>("/api/sign-in", {}, signal);
}
