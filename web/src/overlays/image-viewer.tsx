import "../styles/viewer.css";

import { type KeptFile } from "@threadkeep/client";
import { ChevronLeft, ChevronRight, Download, Maximize, X, ZoomIn, ZoomOut } from "lucide-react";
import { useEffect, useRef, useState, type KeyboardEvent } from "react";

import { download } from "../api/download";
import { filePath } from "../api/file-paths";
import { fetchImage, usePreview } from "../state/previews";
import { IconButton } from "../ui/icon-button";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useViewerWords } from "../words/viewer";
import { STEP, useZoom } from "./use-zoom";

export interface ViewerProps {
  images: readonly KeptFile[];
  /** Which of them is shown first. */
  first: number;
  onClose: () => void;
}

/** Images in full size, one at a time. */
export function ImageViewer({ images, first, onClose }: ViewerProps) {
  const words = useWords();
  const viewerWords = useViewerWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const stage = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(first);
  const image = images[at]!;
  const { url, failed } = useFullImage(image.fileId);
  const { place, isZoomed, zoomBy, fit, ...handlers } = useZoom(stage, image.fileId);
  useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("header button:last-child")?.focus();
  }, []);

  const close = () => dialog.current?.close();
  const go = (by: number) => setAt((now) => Math.min(images.length - 1, Math.max(0, now + by)));
  const save = async () => {
    try {
      await download(filePath(image.fileId), {}, image.fileName);
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowLeft") go(-1);
    else if (event.key === "ArrowRight") go(1);
    else if (event.key === "+" || event.key === "=") zoomBy(STEP);
    else if (event.key === "-") zoomBy(1 / STEP);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  };
  // Disabled buttons stay and keep the focus, without which no key would reach us.
  return (
    <dialog ref={dialog} className="viewer" aria-label={viewerWords.image(image.fileName)} onClose={onClose} onKeyDown={onKeyDown}>
      <header>
        <p role="status">
          <span className="name">{image.fileName}</span>
          {images.length > 1 && <small>{words.versionShort(at + 1, images.length)}</small>}
        </p>
        <IconButton
          icon={ZoomOut}
          label={viewerWords.zoomOut}
          unavailable={isZoomed ? undefined : viewerWords.zoomOut}
          onClick={() => zoomBy(1 / STEP)}
        />
        <IconButton icon={Maximize} label={viewerWords.zoomFit} unavailable={isZoomed ? undefined : viewerWords.zoomFit} onClick={fit} />
        <IconButton icon={ZoomIn} label={viewerWords.zoomIn} onClick={() => zoomBy(STEP)} />
        <IconButton icon={Download} label={words.download} onClick={() => void save()} />
        <IconButton icon={X} label={words.close} onClick={close} />
      </header>
      <div
        ref={stage}
        className="stage"
        data-zoomed={isZoomed}
        aria-busy={!url && !failed}
        onClick={(event) => event.target === event.currentTarget && !isZoomed && close()}
        {...handlers}
      >
        {failed ? (
          <p role="alert">{viewerWords.imageFailed}</p>
        ) : (
          <FullImage key={image.fileId} image={image} url={url} transform={place} />
        )}
      </div>
      {images.length > 1 && (
        <>
          <div className="previous">
            <IconButton
              icon={ChevronLeft}
              label={viewerWords.previousImage}
              unavailable={at > 0 ? undefined : viewerWords.previousImage}
              onClick={() => go(-1)}
            />
          </div>
          <div className="next">
            <IconButton
              icon={ChevronRight}
              label={viewerWords.nextImage}
              unavailable={at < images.length - 1 ? undefined : viewerWords.nextImage}
              onClick={() => go(1)}
            />
          </div>
        </>
      )}
    </dialog>
  );
}

/** The preview, until the full image has loaded. */
function FullImage({ image, url, transform }: { image: KeptFile; url: string | null; transform: string }) {
  const preview = usePreview(image.fileId);
  const shown = url ?? preview.url;
  if (!shown) return null;
  const { width, height } = image;
  return (
    <img
      src={shown}
      alt={image.fileName}
      width={width ?? undefined}
      height={height ?? undefined}
      draggable={false}
      style={{ transform }}
    />
  );
}

interface Full {
  fileId: string;
  /** Null if it couldn't be loaded. */
  url: string | null;
}

function useFullImage(fileId: string): { url: string | null; failed: boolean } {
  const [full, setFull] = useState<Full | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    const coming = fetchImage(fileId, false, leaving.signal);
    coming.then(
      (url) => leaving.signal.aborted || setFull({ fileId, url }),
      () => leaving.signal.aborted || setFull({ fileId, url: null }),
    );
    return () => {
      leaving.abort();
      coming.then((url) => URL.revokeObjectURL(url)).catch(() => {});
    };
  }, [fileId]);
  const own = full?.fileId === fileId ? full : null;
  return { url: own?.url ?? null, failed: own !== null && own.url === null };
}
