import { type Thread } from "@threadkeep/client";

import { useChunk } from "../../ui/use-chunk";

const loadStage = () => import("./crash-stage");
/** The turn goes on without it. */
const doWithout = () => true;

/** The Guide's crash as it is seen, with code that loads with the first conversation with the Guide. */
export function LazyCrashStage({ thread }: { thread: Thread }) {
  const stage = useChunk(loadStage, true, doWithout);
  return stage && <stage.CrashStage thread={thread} />;
}
