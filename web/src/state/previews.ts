/** Previews of images. They need our token, so the page fetches them and shows them from memory; a few stay there. */

import { useEffect, useState } from "react";

import { api } from "../api/api";
import { filePath } from "../api/file-paths";

interface Preview {
  users: number;
  /** Null until it has loaded. */
  url: string | null;
  coming: Promise<string>;
}

/** How many unused ones to keep, for scrolling back. */
const MOST_IDLE = 40;

/** In order of last use. */
const previews = new Map<string, Preview>();

/** The next user sees none of this one's. */
export function forgetPreviews(): void {
  forgetIdle(0);
}

/** Shows a just uploaded image from its local file. */
export function seedPreview(fileId: string, url: string): void {
  previews.set(fileId, { users: 0, url, coming: Promise.resolve(url) });
  forgetIdle(MOST_IDLE);
}

/** The URL of a file's preview, once loaded; null loads nothing. */
export function usePreview(fileId: string | null): { url: string | null; failed: boolean } {
  const [url, setUrl] = useState(() => (fileId && previews.get(fileId)?.url) || null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (fileId === null) return;
    let wanted = true;
    setFailed(false);
    hold(fileId).then(
      (it) => wanted && setUrl(it),
      () => wanted && setFailed(true),
    );
    return () => {
      wanted = false;
      release(fileId);
    };
  }, [fileId]);
  return { url, failed };
}

function hold(fileId: string): Promise<string> {
  const preview = previews.get(fileId) ?? fetched(fileId);
  previews.delete(fileId);
  previews.set(fileId, preview);
  preview.users++;
  return preview.coming;
}

function fetched(fileId: string): Preview {
  const preview: Preview = { users: 0, url: null, coming: fetchImage(fileId, true) };
  preview.coming.then(
    (url) => (preview.url = url),
    () => previews.delete(fileId), // asked for again when it is next shown
  );
  return preview;
}

function release(fileId: string): void {
  const preview = previews.get(fileId);
  if (preview) preview.users--;
  forgetIdle(MOST_IDLE);
}

function forgetIdle(most: number): void {
  const idle = [...previews].filter(([, it]) => it.users === 0);
  for (const [fileId, { coming }] of idle.slice(0, Math.max(0, idle.length - most))) {
    previews.delete(fileId);
    void coming.then((url) => URL.revokeObjectURL(url)).catch(() => {});
  }
}

/** An address under which an image is shown; the caller revokes it. */
export async function fetchImage(fileId: string, preview: boolean, signal?: AbortSignal): Promise<string> {
  const query = preview ? { preview } : {};
  const response = await api.request(filePath(fileId), { query, headers: { Accept: "*/*" }, signal });
  return URL.createObjectURL(await response.blob());
}
