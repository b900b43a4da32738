/** A turn's request, run again: its events while it runs, then the result. It ends when the signal is aborted. */

import { type ApiClient } from "../api-client.ts";
import { Unreachable } from "../errors.ts";
import { type RerunBody, type RerunView } from "../schema.ts";
import { eventsOf } from "../sse.ts";
import { type TurnEvent } from "./events.ts";

export async function rerunTurn(
  api: ApiClient,
  turnId: string,
  body: RerunBody,
  signal: AbortSignal,
  onEvents: (events: TurnEvent[]) => void,
): Promise<RerunView> {
  const headers = { Accept: "text/event-stream" };
  const response = await api.request(`/api/turns/${turnId}/rerun`, { method: "POST", body, headers, signal });
  for await (const frames of eventsOf<TurnEvent | RerunView>(response)) {
    onEvents(frames.filter((it): it is TurnEvent => "seq" in it));
    const result = frames.find((it): it is RerunView => "outcome" in it);
    if (result) return result;
  }
  throw new Unreachable("the stream ended before its result");
}
