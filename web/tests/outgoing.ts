import { expect, vi } from "vitest";

import { type OutgoingFile } from "../packages/client/src/outbox/entry";
import { unsent } from "../src/state/outbox";
import { type KeptFile } from "../packages/client/src/turn/files";

/** Waits until the server has taken or refused what the outbox was given. */
export async function delivered(given: Promise<boolean>): Promise<void> {
  expect(await given).toBe(true);
  await vi.waitFor(() => expect(unsent.get()).toEqual([]));
}

/** A file that the server has. */
export function outgoing(kept: KeptFile): OutgoingFile {
  const { fileId, fileName, mediaType, size } = kept;
  return { key: fileId, fileName, mediaType, size, kept, source: null };
}
