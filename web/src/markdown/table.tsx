import { useRef, type ReactNode } from "react";

import { useChunk } from "../ui/use-chunk";

const loadTools = () => import("../previews/table-tools");

/** A table, with what one can do with it as soon as it is complete. */
export function Table({ live, children }: { live: boolean; children: ReactNode }) {
  const table = useRef<HTMLTableElement>(null);
  const tools = useChunk(loadTools, !live, () => true);
  return (
    <figure className="table-figure">
      <div className="table" tabIndex={0}>
        <table ref={table}>{children}</table>
      </div>
      {!live && tools && <tools.TableTools table={table}>{children}</tools.TableTools>}
    </figure>
  );
}
