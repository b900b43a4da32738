import { type Fetch } from "../api-client.ts";

/** A `fetch` for uploads that reports which share was sent: the browser's own can't, so this uses XMLHttpRequest. */
export function reportingFetch(onProgress: (share: number) => void): Fetch {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(method, url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
      request.upload.onload = () => onProgress(1);
      request.onload = () => resolve(responseOf(request));
      request.onerror = () => reject(new TypeError("The server can't be reached"));
      request.onabort = () => reject(signal?.reason);
      signal?.addEventListener("abort", () => request.abort());
      request.send(body);
    });
}

function responseOf(request: XMLHttpRequest): Response {
  const { status, statusText, responseText } = request;
  const retryAfter = request.getResponseHeader("Retry-After");
  return new Response(responseText, { status, statusText, ...(retryAfter && { headers: { "Retry-After": retryAfter } }) });
}
