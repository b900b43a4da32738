import { ApiError, type SharedMessageView, type SharedView } from "@threadkeep/client";
import { useCallback, useEffect, useState } from "react";

import { api } from "../api/api";
import { shareToken } from "../api/file-paths";
import { loadSession, session } from "../state/session";

export type Shared =
  | { state: "loading" }
  /** It can't be read now: it doesn't exist, one must sign in first, or the server doesn't respond. */
  | { state: "missing" | "signed-out" | "unavailable" }
  | { state: "ready"; about: Omit<SharedView, "messages">; messages: readonly SharedMessageView[] };

/** A shared conversation, read piece by piece. */
export function useShared(): { shared: Shared; readMore: () => Promise<void>; retry: () => void } {
  const [shared, setShared] = useState<Shared>({ state: "loading" });
  const read = useCallback(
    (cursor?: string) => api.get<SharedView>(`/api/shares/${shareToken}`, { cursor }),
    [],
  );
  const begin = useCallback(async () => {
    try {
      const { messages, ...about } = await read();
      setShared({ state: "ready", about, messages });
    } catch (error) {
      setShared({ state: problemOf(error) });
    }
  }, [read]);
  useEffect(() => void begin(), [begin]);
  const isSignedOut = shared.state === "signed-out";
  useEffect(() => {
    if (!isSignedOut) return;
    const stop = session.subscribe(() => session.get().state === "in" && void begin());
    void loadSession(); // another tab may be signed in
    return stop;
  }, [isSignedOut, begin]);
  const readMore = async () => {
    if (shared.state !== "ready" || !shared.about.nextCursor) return;
    try {
      const { messages, ...about } = await read(shared.about.nextCursor);
      setShared({ state: "ready", about, messages: [...shared.messages, ...messages] });
    } catch (error) {
      setShared({ state: problemOf(error) }); // revoked meanwhile: nothing of it stays
    }
  };
  return { shared, readMore, retry: () => void begin() };
}

function problemOf(error: unknown): "missing" | "signed-out" | "unavailable" {
  if (!(error instanceof ApiError)) return "unavailable";
  if (error.status === 401) return "signed-out";
  return error.status === 404 ? "missing" : "unavailable";
}
