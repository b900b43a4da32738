import "../../styles/crash-stage.css";

import { contentOf, type Part, type Thread } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { useEffect, useState } from "react";

import { replayCrashOf } from "../../state/crash-replay";
import { openTurn, route } from "../../state/route";
import { useStageWords } from "../../words/stage";

/** A reply writes more often than this; one that doesn't has lost its server. */
const SILENT_MS = 700;
/** Long enough to read the end before the replay covers it. */
const REPLAY_AFTER_MS = 1500;

type Stage = "there" | "gone" | "back";

/** Makes the Guide's crash visible: whether the server is there, gone or back; at the end it opens the replay. */
export function CrashStage({ thread }: { thread: Thread }) {
  const stageWords = useStageWords();
  const turnId = useSelected(thread.state, ({ live }) => (live && isUnplugged(live.message.parts) ? live.message.turnId : null));
  const written = useSelected(thread.state, ({ live }) => (live ? contentOf(live.message.parts).length : 0));
  const isBack = useSelected(thread.state, ({ live }) => (live ? live.resumedAt.length > 0 : false));
  /** How much was written when nothing more came. */
  const [silentAt, setSilentAt] = useState<number | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSilentAt(written), SILENT_MS);
    return () => clearTimeout(timer);
  }, [written]);
  useEffect(() => {
    if (!turnId || !isBack) return;
    return () => {
      // It has ended.
      setTimeout(() => {
        const at = route.get();
        if (at.name !== "conversation" || at.id !== thread.id || thread.state.get().live) return;
        replayCrashOf(turnId);
        openTurn(turnId);
      }, REPLAY_AFTER_MS);
    };
  }, [turnId, isBack, thread]);
  if (!turnId) return null;
  const stage: Stage = isBack ? "back" : silentAt === written ? "gone" : "there";
  return (
    <p className="banner crash-stage" data-stage={stage} role="status">
      <i aria-hidden /> {stageWords[stage]}
    </p>
  );
}

function isUnplugged(parts: readonly Part[]): boolean {
  return parts.some((it) => it.type === "tool_call" && it.toolName === "unplug_server" && it.status === "ok");
}
