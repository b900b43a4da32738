import { type KeptFile } from "@threadkeep/client";
import { useRef } from "react";

import { useNearlyVisible } from "../../hooks/use-nearly-visible";
import { usePreview } from "../../state/previews";
import { FileIcon } from "./file-icon";

/** An image's preview, fetched shortly before it is visible; its space is reserved before. */
export function ImagePreview({ file: { fileId, fileName, width, height } }: { file: KeptFile }) {
  const place = useRef<HTMLSpanElement>(null);
  const isNear = useNearlyVisible(place);
  const { url, failed } = usePreview(isNear ? fileId : null);
  return (
    <span ref={place} className="preview">
      {url && (
        <img
          src={url}
          alt={fileName}
          width={width ?? undefined}
          height={height ?? undefined}
          loading="lazy"
          decoding="async"
          draggable={false}
        />
      )}
      {failed && <FileIcon />}
    </span>
  );
}
