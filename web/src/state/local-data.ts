/** What everybody had before people signed in: an admin may take it over. */

import { Store, type MovableView } from "@threadkeep/client";

import { api } from "../api/api";
import { keyHere } from "../api/installation";
import { store } from "../offline/storage";
import { refreshAgents } from "./agents";
import { refreshBriefings } from "./briefings";
import { approvals, conversations } from "./front-end";
import { loadSession } from "./session";

const PUT_OFF = keyHere("local-data");

/** Whether the user has said “not now” in this browser; the page of people still offers it. */
export const isPutOff = new Store(localStorage.getItem(PUT_OFF) !== null);

export function putOff(): void {
  store(PUT_OFF, "later");
  isPutOff.set(true);
}

/** Takes it over, and shows it. */
export async function takeLocalData(): Promise<MovableView> {
  const moved = await api.send<MovableView>("POST", "/api/admin/reassign-local");
  await Promise.allSettled([loadSession(), conversations.refresh(), approvals.refresh(), refreshAgents(), refreshBriefings()]);
  return moved;
}
