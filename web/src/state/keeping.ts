import { type MeView } from "@threadkeep/client";

import { choose } from "../offline/choice";
import { device } from "../offline/device";
import { frontEnd } from "./front-end";

/** Keeps the user's conversations on this device from now on, or deletes them all; throws if the browser can't. */
export async function setKept(me: MeView, isOn: boolean): Promise<void> {
  choose(me.id, isOn);
  await device.own(me);
  if (isOn) frontEnd.events.reset(); // what is open is read again, and kept
}
