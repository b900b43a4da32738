import { useChunk } from "../hooks/use-chunk";
import { type Missing } from "./missing-page";

const loadPages = () => import("./page-chunk");

/** A page for something that doesn't exist; its code is loaded on demand. */
export function LazyMissingPage({ what, onMenu }: { what: Missing; onMenu: () => void }) {
  const pages = useChunk(loadPages, true);
  return pages && <pages.MissingPage what={what} onMenu={onMenu} />;
}
