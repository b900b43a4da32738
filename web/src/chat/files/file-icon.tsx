import { FileText } from "lucide-react";

/** Stands for a file whose content is not shown. */
export function FileIcon() {
  return (
    <span className="file-icon" aria-hidden>
      <FileText />
    </span>
  );
}
