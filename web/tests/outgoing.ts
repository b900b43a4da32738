import { type KeptFile, type OutgoingFile } from "@threadkeep/client";
import { expect, vi } from "vitest";

import { outbox } from "../src/state/front-end";

/** Waits until the server has taken or refused what the outbox was given. */
export async function delivered(given: Promise<boolean>): Promise<void> {
  expect(await given).toBe(true);
  await vi.waitFor(() => expect(outbox.items.get()).toEqual([]));
}

/** A file that the server has. */
export function outgoing(kept: KeptFile): OutgoingFile {
  const { fileId, fileName, mediaType, size } = kept;
  return { key: fileId, fileName, mediaType, size, kept, source: null };
}
