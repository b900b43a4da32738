import { type MessageView } from "../src/schema";
import { type TurnEvent } from "../src/turn/events";
import { startReply, type LiveReply } from "../src/turn/fold";
import recorded from "./recorded.json";

/** A turn's log with the message that the server makes of it. */
export interface Recording {
  name: string;
  events: TurnEvent[];
  message: MessageView;
}

export const RECORDINGS = recorded as unknown as Recording[];

export function recording(name: string): Recording {
  const found = RECORDINGS.find((it) => it.name === name);
  if (!found) throw new Error(`There is no recording ${name}`);
  return found;
}

/** The reply as it is before the turn's first event. */
export function begun({ message }: Recording): LiveReply {
  const { error: _, ...rest } = message;
  return startReply({ ...rest, status: "PENDING", model: null, completedAt: null });
}
