import { type KeptFile } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useEffect } from "react";

import { viewed } from "../state/viewed-image";
import { useChunk } from "../ui/use-chunk";

const loadViewer = () => import("./image-viewer");
const close = () => viewed.set(null);

/** Shows an opened image large, with code that is loaded on demand. `images`: those beside it. */
export function LazyImageViewer({ images }: { images: () => readonly KeptFile[] }) {
  const image = useStore(viewed);
  const viewer = useChunk(loadViewer, image !== null, close);
  useEffect(() => close, []);
  if (!image || !viewer) return null;
  const all = images();
  const at = all.findIndex((it) => it.fileId === image.fileId);
  return <viewer.ImageViewer images={at < 0 ? [image] : all} first={Math.max(0, at)} onClose={close} />;
}
