import { type Segment } from "../../turn/segments";
import { useChunk } from "../../ui/use-chunk";

export const loadFiles = () => import("./tool-files");

/** Files that tools returned; the code that shows them is loaded with the first one. */
export function LazyToolFiles({ segment }: { segment: Extract<Segment, { kind: "files" | "elsewhere" }> }) {
  const files = useChunk(loadFiles, true);
  if (!files) return null;
  return segment.kind === "files" ? <files.ToolFiles ids={segment.ids} /> : <files.FilesElsewhere ids={segment.ids} />;
}
