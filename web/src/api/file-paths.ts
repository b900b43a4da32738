/** Where the server has files: a user's own, or a share's. */

import { filePath as ownFilePath } from "@threadkeep/client";

import { isOfShare } from "./api";

/** What the address of a share's page ends with. */
export const shareToken = isOfShare ? (location.pathname.split("/").at(-1) ?? "") : null;

/** A file of a message. */
export function filePath(fileId: string): string {
  return shareToken === null ? ownFilePath(fileId) : sharedPath(fileId);
}

/** A file that a tool returned. */
export function artifactPath(artifactId: string): string {
  return shareToken === null ? `/api/artifacts/${artifactId}` : sharedPath(artifactId);
}

function sharedPath(id: string): string {
  return `/api/shares/${shareToken}/files/${id}`;
}
