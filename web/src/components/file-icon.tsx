import { FileCode, FileText, Image, Sheet } from "lucide-react";

/** A picture of what a file is. */
export function FileIcon({ mediaType }: { mediaType: string }) {
  const Icon = mediaType.startsWith("image/")
    ? Image
    : mediaType === "text/csv"
      ? Sheet
      : /json|code/.test(mediaType)
        ? FileCode
        : FileText;
  return (
    <span className="file-icon" aria-hidden>
      <Icon />
    </span>
  );
}
