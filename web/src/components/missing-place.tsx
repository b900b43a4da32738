import { type Missing } from "./missing-page";
import { useChunk } from "./use-chunk";

const loadPages = () => import("./other-pages");

/** Where something should be that is not there; what says so is loaded then. */
export function MissingPlace({ what, onMenu }: { what: Missing; onMenu: () => void }) {
  const pages = useChunk(loadPages, true);
  return pages && <pages.MissingPage what={what} onMenu={onMenu} />;
}
