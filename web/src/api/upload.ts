/** Uploads one file. `fetch` does not report an upload's progress, so this uses XMLHttpRequest. */

import { ApiError, errorFrom, Unreachable } from "@threadkeep/client";

import { api, onUnauthorized, token } from "./api";

/** The file as the server describes it; `onProgress` receives the share that has been sent. */
export function upload<T extends object>(
  path: string,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const held = token.get();
    request.open("POST", api.url(path));
    request.setRequestHeader("Accept", "application/json");
    if (held) request.setRequestHeader("Authorization", `Bearer ${held}`);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.upload.onload = () => onProgress(1);
    request.onload = () => {
      // The response belongs to a user who has signed out since.
      if (token.get() !== held) return reject(new Unreachable("signed out"));
      const result = resultOf<T>(request);
      if (result instanceof Error) reject(result);
      else resolve(result);
    };
    request.onerror = () => reject(new Unreachable(file.name));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort());
    const body = new FormData();
    body.append("files", file);
    request.send(body);
  });
}

function resultOf<T>(request: XMLHttpRequest): T | ApiError | Unreachable {
  const { status, responseText } = request;
  if (status === 401) onUnauthorized();
  if (status < 200 || status > 299) return errorFrom(status, responseText, "", request.getResponseHeader("Retry-After"));
  try {
    return (JSON.parse(responseText) as { items: [T] }).items[0];
  } catch {
    return new Unreachable(String(status)); // somebody else's page, as of a network that wants a sign-in
  }
}
