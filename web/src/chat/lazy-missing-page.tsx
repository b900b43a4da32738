import { useChunk } from "../ui/use-chunk";
import type { MissingProps } from "./missing-page";

const loadPages = () => import("../pages/page-chunk");

/** A page for something that doesn't exist; its code is loaded on demand. */
export function LazyMissingPage(props: MissingProps) {
  const pages = useChunk(loadPages, true);
  return pages && <pages.MissingPage {...props} />;
}
