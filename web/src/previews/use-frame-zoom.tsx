import { Maximize, ZoomIn, ZoomOut } from "lucide-react";
import { useState } from "react";

import { IconButton } from "../ui/icon-button";
import { useViewerWords } from "../words/viewer";

const STEP = 1.5;
const MOST = 8;

/** How large an image is in its larger view, and the buttons that change it; 1 fits the window. */
export function useFrameZoom() {
  const viewerWords = useViewerWords();
  const [scale, setScale] = useState(1);
  const zoomBy = (factor: number) => setScale((now) => Math.min(MOST, Math.max(1, now * factor)));
  const buttons = (
    <>
      <IconButton icon={ZoomOut} label={viewerWords.zoomOut} disabled={scale === 1} onClick={() => zoomBy(1 / STEP)} />
      <IconButton icon={ZoomIn} label={viewerWords.zoomIn} disabled={scale === MOST} onClick={() => zoomBy(STEP)} />
      <IconButton icon={Maximize} label={viewerWords.zoomFit} disabled={scale === 1} onClick={() => setScale(1)} />
    </>
  );
  return { scale, buttons };
}
