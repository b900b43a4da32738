import "../styles/shared-page.css";

import { imagesOf, type Message, type SharedMessageView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useEffect, useMemo } from "react";

import { LazyImageViewer } from "../overlays/lazy-image-viewer";
import { Toasts } from "../overlays/toasts";
import { Appearance } from "../pages/appearance";
import { SignIn } from "../pages/sign-in";
import { setPlace } from "../state/page-title";
import { session } from "../state/session";
import { Logo } from "../ui/logo";
import { ScrollSentinel } from "../ui/scroll-sentinel";
import { Tooltip } from "../ui/tooltip";
import { useWords } from "../words";
import { useShareWords } from "../words/shares";
import { SharedMessage } from "./shared-message";
import { useShared, type Shared } from "./use-shared";

/** The page of a share: a read-only conversation. */
export function SharedPage() {
  const shareWords = useShareWords();
  const { shared, readMore, retry } = useShared();
  const current = useStore(session);
  const title = shared.state === "ready" ? shared.about.title || shareWords.untitled : shareWords.untitled;
  useEffect(() => setPlace(title), [title]);
  if (shared.state === "loading") return null;
  if (shared.state === "signed-out") return current.state === "out" ? <SignIn refused={current.refused} /> : null;
  return (
    <>
      <header className="shared-bar">
        <a href="../" className="brand-link">
          <Logo /> Threadkeep
        </a>
        <span className="badge">{shareWords.readOnly}</span>
        <Appearance />
      </header>
      {shared.state === "ready" ? (
        <Conversation shared={shared} title={title} onMore={readMore} />
      ) : (
        <Missing isGone={shared.state === "missing"} onRetry={retry} />
      )}
      <Toasts />
      <Tooltip />
    </>
  );
}

interface ConversationProps {
  shared: Extract<Shared, { state: "ready" }>;
  title: string;
  onMore: () => Promise<void>;
}

function Conversation({ shared: { about, messages }, title, onMore }: ConversationProps) {
  const { locale } = useWords();
  const shareWords = useShareWords();
  const shown = useMemo(() => messages.map(asMessage), [messages]);
  const day = (iso: string) => new Intl.DateTimeFormat(locale, { dateStyle: "long" }).format(new Date(iso));
  const facts = [
    shareWords.sharedOn(day(about.createdAt)),
    shareWords.messages(about.messageCount),
    about.expiresAt && shareWords.until(day(about.expiresAt)),
  ];
  return (
    <main id="main" className="shared-conversation">
      <div className="shared-head">
        <h1 dir="auto">{title}</h1>
        <p>{facts.filter(Boolean).join(" · ")}</p>
        {!about.tools && <p>{shareWords.leftOut}</p>}
      </div>
      {shown.map((message) => (
        <SharedMessage key={message.id} message={message} />
      ))}
      {about.nextCursor ? <ScrollSentinel onSeen={onMore} /> : <p className="shared-end">{shareWords.made}</p>}
      <LazyImageViewer images={() => imagesOf(shown)} />
    </main>
  );
}

function Missing({ isGone, onRetry }: { isGone: boolean; onRetry: () => void }) {
  const words = useWords();
  const shareWords = useShareWords();
  return (
    <main id="main" className="shared-missing">
      <h1>{isGone ? shareWords.missing : shareWords.unavailable}</h1>
      <p>{isGone ? shareWords.missingText : words.serverUnreachable}</p>
      {!isGone && (
        <button type="button" className="primary" onClick={onRetry}>
          {words.retry}
        </button>
      )}
    </main>
  );
}

/** As the components of the page know messages. */
function asMessage({ number, ...message }: SharedMessageView): Message {
  return {
    ...message,
    id: String(number),
    seq: number,
    conversationId: "",
    parentId: null,
    turnId: null,
    runId: null,
    tokenCount: null,
    usage: null,
    model: null,
    cost: null,
    archived: false,
    completedAt: null,
  };
}
