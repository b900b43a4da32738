import { useChunk } from "../../hooks/use-chunk";
import { type Segment } from "../../turn/segments";

export const loadFiles = () => import("./tool-files");

/** Files that tools returned; the code that shows them is loaded with the first one. */
export function LazyToolFiles({ segment }: { segment: Extract<Segment, { kind: "files" | "elsewhere" }> }) {
  const files = useChunk(loadFiles, true);
  if (!files) return null;
  return segment.kind === "files" ? <files.ToolFiles ids={segment.ids} /> : <files.FilesElsewhere ids={segment.ids} />;
}
