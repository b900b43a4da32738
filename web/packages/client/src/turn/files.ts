/** Files that a message has. */

import { type ApiClient, type ApiRequest } from "../api-client.ts";
import { type FilePartView, type UploadedFileView } from "../schema.ts";
import { type Message, type Part } from "./parts.ts";

/** A file that the server has: as much of it as a page shows. */
export type KeptFile = Pick<FilePartView, "fileId" | "fileName" | "mediaType" | "size" | "width" | "height">;

/** Where the server has it. */
export function filePath(fileId: string): string {
  return `/api/files/${fileId}`;
}

/** Uploads a file for a message. */
export async function uploadFile(api: ApiClient, file: Blob, options?: Pick<ApiRequest, "signal" | "fetch">): Promise<KeptFile> {
  const { id, ...kept } = await api.upload<UploadedFileView>("/api/files", file, options);
  return { fileId: id, ...kept };
}

export function filesOf(parts: readonly Part[]): FilePartView[] {
  return parts.filter((part) => part.type === "file" && !part.superseded) as FilePartView[];
}

export function isImage({ mediaType }: KeptFile): boolean {
  return mediaType.startsWith("image/");
}

/** Whether the server has measured it, and so has a preview of it; what a tool gave as a file is only for saving. */
export function isMeasuredImage(file: KeptFile): boolean {
  return isImage(file) && !!file.width && !!file.height;
}

/** The images of a conversation in their order. */
export function imagesOf(messages: readonly Message[]): KeptFile[] {
  return messages.flatMap(({ parts }) => filesOf(parts).filter(isMeasuredImage));
}

/** The first parts of a message: its files. */
export function filePart({ fileId, fileName, mediaType, size, width, height }: KeptFile): FilePartView {
  return { type: "file", fileId, fileName, mediaType, size, width, height, iteration: 0 };
}

/** The end of a file's name, or of its type: what people call its kind. */
export function kindOf({ fileName, mediaType }: Pick<KeptFile, "fileName" | "mediaType">): string {
  const suffix = /\.(\w{1,8})$/.exec(fileName)?.[1] ?? mediaType.split("/").at(-1) ?? "";
  return suffix.toUpperCase();
}
