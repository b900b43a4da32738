/** Downloads files: fetches them with our token and hands them to the browser. */

import { api } from "./api";

/** The name in `Content-Disposition`. */
export function fileName(disposition: string | null): string | null {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "")?.[1];
  if (encoded) {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return null;
    }
  }
  return /filename="([^"]*)"/i.exec(disposition ?? "")?.[1] ?? null;
}

export interface FileInfo {
  name: string;
  type: string;
  size: number;
}

/** What a file is, without fetching it. */
export async function fileInfo(path: string, signal: AbortSignal): Promise<FileInfo> {
  const { headers } = await api.request(path, { method: "HEAD", headers: { Accept: "*/*" }, signal });
  return {
    name: fileName(headers.get("content-disposition")) ?? "",
    type: (headers.get("content-type") ?? "").split(";")[0]!.trim(),
    size: Number(headers.get("content-length") ?? 0),
  };
}

export async function download(path: string, query: Record<string, string>, otherwise: string): Promise<void> {
  const response = await api.request(path, { query, headers: { Accept: "*/*" } });
  save(await response.blob(), fileName(response.headers.get("content-disposition")) ?? otherwise);
}

/** Hands a file to the browser. */
export function save(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
