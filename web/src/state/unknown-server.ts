/** Messages of an earlier version, which did not note for which of the servers at this address they were written. */

import { type OfflineWords } from "../words/offline";
import { confirmed } from "./confirmation";
import { outbox } from "./front-end";

/** Asks whether this server gets them; if not, their text returns to the composer. */
export async function askAboutUnknown(offlineWords: OfflineWords): Promise<void> {
  const { length } = await outbox.ofUnknownServer();
  if (!length) return;
  const question = { title: offlineWords.sendUnknown(length), text: offlineWords.sendUnknownText, action: offlineWords.send, isHarmless: true };
  await outbox.settleUnknown(await confirmed(question));
}
