import { type KeptFile } from "@threadkeep/client";

import { viewed } from "../../state/viewed-image";
import { useWords } from "../../words";
import { ImagePreview } from "./image-preview";

/** The largest size of a single image, in pixels. */
const WIDEST = 320;
const HIGHEST = 280;

/** An image of a message, which opens in full size; one of several is cut to a square. */
export function ImageButton({ image, alone = false }: { image: KeptFile; alone?: boolean }) {
  const words = useWords();
  return (
    <button
      type="button"
      className="image"
      aria-label={words.openImage(image.fileName)}
      title={image.fileName}
      style={alone ? fitted(image) : undefined}
      onClick={() => viewed.set(image)}
    >
      <ImagePreview file={image} />
    </button>
  );
}

/** The space that it takes, known before it has loaded. */
function fitted({ width, height }: KeptFile) {
  if (!width || !height) return undefined;
  const scale = Math.min(1, WIDEST / width, HIGHEST / height);
  return { width: Math.round(width * scale), height: "auto", aspectRatio: `${width} / ${height}` };
}
