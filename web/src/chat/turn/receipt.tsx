import { type ReceiptView, type UsageView } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { type ReactNode } from "react";

import { Fact } from "../../ui/fact";
import { LongText } from "../../ui/long-text";
import { useWords } from "../../words";
import { useTurnWords } from "../../words/turn";
import { SentMessages } from "./sent-messages";

interface Props {
  receipt: ReceiptView;
  conversationId: string;
  /** What all model calls of the turn cost. */
  usage: UsageView | null;
}

/** What the model received. Only the agent's owner and admins see the prompt's text. */
export function Receipt({ receipt, conversationId, usage }: Props) {
  const words = useWords();
  const turnWords = useTurnWords();
  const { components, messageIds, droppedMessages, tools, files = [], summary, prefixShare } = receipt;
  const cached = usage?.cacheReadTokens ?? 0;
  const counted = (count: number) => count.toLocaleString(words.locale);
  return (
    <>
      <dl className="facts">
        <Fact name={turnWords.tokenEstimate} value={counted(receipt.tokenEstimate)} />
        <Fact
          name={words.conversation}
          value={turnWords.contextMessages(messageIds.length) + (droppedMessages ? `, ${turnWords.contextDropped(droppedMessages)}` : "")}
        />
        {prefixShare !== null && (
          <Fact name={turnWords.prefixShare} value={prefixShare.toLocaleString(words.locale, { style: "percent" })} />
        )}
        {tools.length > 0 && <Fact wide name={turnWords.contextTools} value={<Tools names={tools} />} />}
        {files.length > 0 && <Fact wide name={turnWords.contextFiles} value={files.map((it) => it.fileName).join(", ")} />}
      </dl>
      {usage && cached > 0 && (
        <Share name={turnWords.fromCache} share={cached / Math.max(1, usage.inputTokens)}>
          {turnWords.cachedOf(counted(cached), counted(usage.inputTokens))}
        </Share>
      )}
      {components.map((it) => (
        <Folded
          key={it.name}
          title={turnWords.promptParts[it.name] ?? it.name}
          about={words.characters(counted(it.length)) + (it.truncated ? ` · ${words.cut}` : "")}
        >
          <LongText text={it.text ?? it.sha256} />
        </Folded>
      ))}
      {summary && (
        <Folded title={words.contextSummary}>
          <LongText text={summary} />
        </Folded>
      )}
      {messageIds.length > 0 && <SentMessages conversationId={conversationId} ids={messageIds} />}
    </>
  );
}

/** The tools that the model could call, by their own names; those of other servers come to it as `server__tool`. */
function Tools({ names }: { names: readonly string[] }) {
  return (
    <ul className="named-tools">
      {names.map((name) => {
        const [server, ...tool] = name.split("__");
        return (
          <li key={name}>
            <code>{tool.length ? tool.join("__") : name}</code>
            {tool.length > 0 && <small>{server}</small>}
          </li>
        );
      })}
    </ul>
  );
}

/** The part of the input that the provider had in its cache. */
function Share({ name, share, children }: { name: string; share: number; children: ReactNode }) {
  const { locale } = useWords();
  return (
    <div className="share">
      <p>
        <span>{name}</span>
        <span>{share.toLocaleString(locale, { style: "percent" })}</span>
      </p>
      <span className="bar" aria-hidden>
        <i style={{ width: `${Math.min(1, share) * 100}%` }} />
      </span>
      <small>{children}</small>
    </div>
  );
}

function Folded({ title, about, children }: { title: string; about?: string; children: ReactNode }) {
  return (
    <details className="card">
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{title}</span>
        {about && <small>{about}</small>}
      </summary>
      {children}
    </details>
  );
}
