import { ApiError, type PageView_ShareView, type ShareView } from "@threadkeep/client";
import { useEffect, useState } from "react";

import { api } from "../../api/api";

/** A conversation's shares, newest first. */
export function useShares(conversationId: string) {
  const [shares, setShares] = useState<readonly ShareView[]>([]);
  useEffect(() => {
    let wanted = true;
    api.get<PageView_ShareView>(`/api/conversations/${conversationId}/shares`).then(
      ({ items }) => wanted && setShares(items),
      () => {}, // new ones can be made all the same
    );
    return () => {
      wanted = false;
    };
  }, [conversationId]);
  const add = (share: ShareView) => setShares((now) => [share, ...now]);
  const revoke = async ({ id }: ShareView) => {
    await api.send("DELETE", `/api/shares/${id}`).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== "SHARE_NOT_FOUND") throw error; // revoked elsewhere
    });
    setShares((now) => now.filter((it) => it.id !== id));
  };
  return { shares, add, revoke };
}
