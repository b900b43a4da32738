/** What is known of files of which a message that waits tells only the id. */

import { useEffect, useState } from "react";

import { fileInfo } from "../api/download";
import { type KeptFile } from "../turn/files";

const known = new Map<string, KeptFile>();

export function rememberFile(file: KeptFile): void {
  known.set(file.fileId, file);
}

export function filePath(fileId: string): string {
  return `/api/files/${fileId}`;
}

/** The file; null until the server has told what it is, or where it does not say. */
export function useFile(fileId: string): KeptFile | null {
  const [file, setFile] = useState(known.get(fileId) ?? null);
  useEffect(() => {
    if (known.has(fileId)) return setFile(known.get(fileId)!);
    const leaving = new AbortController();
    fileInfo(filePath(fileId), leaving.signal)
      .then(({ name, type, size }) => {
        rememberFile({ fileId, fileName: name, mediaType: type, size });
        setFile(known.get(fileId)!);
      })
      .catch(() => {}); // it is named by its number
    return () => leaving.abort();
  }, [fileId]);
  return file;
}
