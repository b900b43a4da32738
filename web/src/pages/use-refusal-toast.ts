import { problemOf } from "@threadkeep/client";
import { useEffect } from "react";

import { outbox, returnsTo } from "../state/front-end";
import { go, route, type Route } from "../state/route";
import { describeProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";

/** Shows a toast when the server refuses a message while the user is elsewhere, with a way back to its text. */
export function useRefusalToast(): void {
  const words = useWords();
  useEffect(
    () =>
      outbox.on((event) => {
        const { type, entry } = event;
        if (type !== "refused" || entry.kind !== "message") return;
        const id = returnsTo(entry, event.error);
        const place: Place = id === null ? { name: "new", agentId: entry.agentId } : { name: "conversation", id };
        if (isAt(place)) return;
        const reason = describeProblem(words, problemOf(event.error));
        toast(words.notSent(reason), { label: words.open, run: () => go(place) });
      }),
    [words],
  );
}

type Place = Extract<Route, { name: "new" | "conversation" }>;

function isAt(place: Place): boolean {
  const now = route.get();
  if (place.name === "new") return now.name === "new" && now.agentId === place.agentId;
  return now.name === "conversation" && now.id === place.id;
}
