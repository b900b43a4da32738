import { useEffect, useRef, useState } from "react";

import { agentName, agents } from "../state/agents";
import { conversations } from "../state/front-end";
import { hrefOf } from "../state/route";
import { focusRequest } from "../ui/focus-request";
import { requestLine } from "../ui/request-line";
import { withoutCode } from "../ui/with-code";
import { useWords } from "../words";
import { useAwayWords } from "../words/away";
import { useRequestWords } from "../words/requests";
import { watchAbsence, type Happening } from "./absence";
import { NotificationOffer } from "./notification-offer";
import { choice, closeNotifications, followChoice, isBlocked, isSupported, notify, whenOpened } from "./notifications";

/** Tells the user what happens while the tab is hidden, and offers notifications when one would have helped. */
export function Away() {
  const words = useWords();
  const awayWords = useAwayWords();
  const requestWords = useRequestWords();
  const [isOffered, setOffered] = useState(false);
  const tell = ({ conversationId, request, hasFailed }: Happening) => {
    const conversation = conversations.state.get().items.find(({ id }) => id === conversationId);
    const title = (conversation ?? { title: request?.conversationTitle }).title || words.untitled;
    const asked = request && withoutCode(requestLine(requestWords, request, agentName(agents.get(), request.agentId)));
    const body = asked ? awayWords.asks(asked) : hasFailed ? awayWords.failed : awayWords.ready;
    const told = { href: hrefOf({ name: "conversation", id: conversationId }), requestId: request?.requestId };
    notify({ title, body, tag: conversationId, told });
  };
  useEffect(followChoice, []);
  const latest = useRef(tell);
  useEffect(() => {
    latest.current = tell;
  });
  useEffect(
    () =>
      whenOpened(({ href, requestId }) => {
        location.hash = href;
        if (requestId) focusRequest(requestId);
      }),
    [],
  );
  useEffect(
    () =>
      watchAbsence({
        onHappening: (it) => latest.current(it),
        onReturn: (missed) => {
          closeNotifications();
          if (missed && choice.get() === null && isSupported() && !isBlocked()) setOffered(true);
        },
      }),
    [],
  );
  return isOffered && <NotificationOffer onClose={() => setOffered(false)} />;
}
