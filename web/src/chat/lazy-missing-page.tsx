import { useChunk } from "../ui/use-chunk";
import type { MissingProps } from "./missing-page";

const load = () => import("./missing-page");

/** A page for something that doesn't exist; its code is loaded on demand. */
export function LazyMissingPage(props: MissingProps) {
  const page = useChunk(load, true);
  return page && <page.MissingPage {...props} />;
}
