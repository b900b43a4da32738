import { type AgentView } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { useState } from "react";

import { allowedToolsOf } from "../../state/allowed-tools";
import { approvals } from "../../state/front-end";
import { useChunk } from "../../ui/use-chunk";
import { useWords } from "../../words";
import type { RequestProps } from "./request";

export const loadRequests = () => import("./request-chunk");

/** The bell, once there are requests. */
export function LazyApprovalsBell() {
  const hasAny = useSelected(approvals.items, (all) => all.length > 0);
  const requests = useChunk(loadRequests, hasAny);
  return requests && <requests.ApprovalsBell />;
}

/** The list of tools that run without asking in a conversation, once the user opens it. */
export function LazyAllowedTools(props: { conversationId: string; agent: AgentView | undefined }) {
  const isShown = useSelected(allowedToolsOf, (id) => id === props.conversationId);
  const requests = useChunk(loadRequests, isShown);
  return isShown && requests ? <requests.AllowedTools {...props} /> : null;
}

/** A request for approval or a question; the code that shows it is loaded with the first one. */
export function LazyRequest(props: RequestProps) {
  const words = useWords();
  const [hasFailed, setFailed] = useState(false);
  const requests = useChunk(loadRequests, true, () => {
    setFailed(true);
    return true;
  });
  if (hasFailed)
    return (
      <div className="card question" role="alert">
        <p>{words.partFailed}</p>
        <div className="choices">
          <button type="button" onClick={() => location.reload()}>
            {words.reload}
          </button>
        </div>
      </div>
    );
  return requests && <requests.Request {...props} />;
}
