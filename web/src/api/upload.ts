/** Sends one file. `fetch` does not say how far an upload is, so that an XMLHttpRequest does it. */

import { ApiError, Unreachable, address, refusalIn, token, whenRefused } from "./client";
import { type UploadedFileView, type UploadedFilesView } from "./schema";

/** What the server made of the file; `onProgress` is told the share that has been sent. */
export function upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<UploadedFileView> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const held = token.get();
    request.open("POST", address("/api/files"));
    request.setRequestHeader("Accept", "application/json");
    if (held) request.setRequestHeader("Authorization", `Bearer ${held}`);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => {
      const answer = taken(request);
      if ("id" in answer) resolve(answer);
      else reject(answer);
    };
    request.onerror = () => reject(new Unreachable(file.name));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort());
    const body = new FormData();
    body.append("files", file);
    request.send(body);
  });
}

function taken({ status, responseText }: XMLHttpRequest): UploadedFileView | ApiError | Unreachable {
  whenRefused(status);
  if (status !== 201) return refusalIn(status, responseText);
  return (JSON.parse(responseText) as UploadedFilesView).items[0]!;
}
