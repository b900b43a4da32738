import { type Thread } from "@threadkeep/client";
import { useEffect, useState } from "react";

/** Joins a conversation while the component is there; whether its messages have been read. */
export function useThread(thread: Thread | null): boolean {
  const [joined, setJoined] = useState<Thread | null>(null);
  useEffect(() => {
    if (!thread) return;
    void thread.join().then(() => setJoined(thread));
    return () => thread.leave();
  }, [thread]);
  return thread !== null && joined === thread;
}
