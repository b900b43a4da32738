/** The link of an invitation: whom it signs in, and signing in with it. */

import { type AcceptedView, type InvitationOfferView } from "@threadkeep/client";

import { api } from "../api/api";
import { rename } from "./route";
import { enterByCookie } from "./session";

const INVITATION = "/api/sign-in/invitation";

/** What a link offers. Looking changes nothing. */
export function readInvitation(token: string, signal: AbortSignal): Promise<InvitationOfferView> {
  return api.send("POST", INVITATION, { token }, {}, signal);
}

/** Signs in with it; `switches`: also where somebody else is signed in, who is signed out then. */
export async function acceptInvitation(token: string, switches: boolean): Promise<void> {
  await api.send<AcceptedView>("POST", `${INVITATION}/accept`, { token, switch: switches });
  await enterByCookie();
  leaveInvitation();
}

/** Leads to the page itself; the link doesn't stay in the history. */
export function leaveInvitation(): void {
  rename({ name: "new", agentId: null });
}
