import { type AnswerBody, type PartOf } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { ExternalLink, MessageCircleQuestion } from "lucide-react";
import { useId, useRef, useState, type FormEvent } from "react";

import { Markdown } from "../../markdown/markdown";
import { agentName, agents } from "../../state/agents";
import { answerOf, choicesOf, faultsOf, fieldsOf, initialValues, type Option } from "../../turn/form";
import { escapeHidden } from "../../turn/hidden-characters";
import { WithCode } from "../../ui/with-code";
import { useWords } from "../../words";
import { useRequestWords } from "../../words/requests";
import { ArgumentsList } from "./arguments-list";
import { FormField } from "./form-field";
import { DecisionProblem, QuestionOutcome } from "./request-outcome";
import { useDecision, type Decide } from "./use-decision";

type Question = PartOf<"question">;

interface Props {
  agentId: string | undefined;
  question: Question;
  /** The call whose server asks; missing if the model does. */
  asker?: PartOf<"tool_call">;
  /** Whether it waits for an answer. */
  isOpen: boolean;
  onDecide: Decide;
}

/** A question from the model or an MCP server, and the answer. */
export function QuestionCard({ agentId, question, asker, isOpen, onDecide }: Props) {
  const requestWords = useRequestWords();
  const name = useSelected(agents, (all) => agentName(all, agentId)) || requestWords.theAgent;
  const { open, outcome, sending, unsent, problem, decide } = useDecision(question.requestId, isOpen, onDecide);
  return (
    <div className="card question" role="group" aria-label={requestWords.question} aria-busy={sending} {...open}>
      <p className="asker">
        <MessageCircleQuestion aria-hidden />
        <span>
          <WithCode text={asker ? escapeHidden(requestWords.serverAsks(asker.server, asker.toolName)) : requestWords.asks(name)} />
        </span>
      </p>
      {/* A server's words stay plain: it is not the agent that says them. */}
      {asker ? (
        <p className="asked" dir="auto">
          {escapeHidden(question.message)}
        </p>
      ) : (
        <div className="asked markdown-question">
          <Markdown text={question.message} live={false} isPassage />
        </div>
      )}
      {isOpen ? (
        <>
          <Answering question={question} sending={sending} onDecide={(body) => void decide(body)} />
          <DecisionProblem problem={problem} unsent={unsent} isQuestion />
        </>
      ) : (
        <>
          <Answered content={question.answer?.content} />
          <QuestionOutcome place={outcome} action={question.answer?.action} at={question.answer?.at} />
        </>
      )}
    </div>
  );
}

function Answered({ content }: { content: unknown }) {
  if (content === undefined || content === null) return null;
  if (typeof content === "object" && !Array.isArray(content)) return <ArgumentsList values={content as Record<string, unknown>} />;
  return (
    <p className="given" dir="auto">
      {String(content)}
    </p>
  );
}

interface AnsweringProps {
  question: Question;
  sending: boolean;
  onDecide: (body: AnswerBody) => void;
}

function Answering({ question: { url, schema }, sending, onDecide }: AnsweringProps) {
  if (url) return <OpenLink url={url} sending={sending} onDecide={onDecide} />;
  if (schema?.["properties"]) return <FillIn schema={schema} sending={sending} onDecide={onDecide} />;
  const choices = choicesOf(schema);
  if (choices.length) return <Choose choices={choices} sending={sending} onDecide={onDecide} />;
  return <Write sending={sending} onDecide={onDecide} />;
}

type WayProps = Omit<AnsweringProps, "question">;

function Decline({ sending, onDecide }: WayProps) {
  const requestWords = useRequestWords();
  return (
    <button type="button" className="quiet" aria-disabled={sending} onClick={() => onDecide({ action: "deny" })}>
      {requestWords.decline}
    </button>
  );
}

/** One of a few answers: a button for each. */
function Choose({ choices, sending, onDecide }: WayProps & { choices: readonly Option[] }) {
  return (
    <div className="choices">
      {choices.map(({ value, title }) => (
        <button key={value} type="button" dir="auto" aria-disabled={sending} onClick={() => onDecide({ action: "answer", content: value })}>
          {title}
        </button>
      ))}
      <Decline sending={sending} onDecide={onDecide} />
    </div>
  );
}

function Write({ sending, onDecide }: WayProps) {
  const requestWords = useRequestWords();
  const [text, setText] = useState("");
  const isEmpty = text.trim() === "";
  const submit = () => {
    if (!isEmpty) onDecide({ action: "answer", content: text.trim() });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <textarea
        aria-label={requestWords.yourAnswer}
        placeholder={requestWords.yourAnswer}
        dir="auto"
        rows={2}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          submit();
        }}
      />
      <div className="choices">
        <button type="submit" className="primary" disabled={isEmpty} aria-disabled={sending}>
          {requestWords.giveAnswer}
        </button>
        <Decline sending={sending} onDecide={onDecide} />
      </div>
    </form>
  );
}

/** A form, checked as the server will check it. */
function FillIn({ schema, sending, onDecide }: WayProps & { schema: Record<string, unknown> }) {
  const requestWords = useRequestWords();
  const form = useRef<HTMLFormElement>(null);
  const [fields] = useState(() => fieldsOf(schema));
  const [values, setValues] = useState(() => initialValues(fields));
  const [tried, setTried] = useState(false);
  const faults = tried ? faultsOf(fields, values) : {};
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    const [wrong] = Object.keys(faultsOf(fields, values));
    if (wrong === undefined) onDecide({ action: "answer", content: answerOf(fields, values) });
    else (form.current?.elements.namedItem(wrong) as HTMLElement | null)?.focus();
  };
  return (
    <form ref={form} className="fill-in" noValidate onSubmit={submit}>
      {fields.map((field) => (
        <FormField
          key={field.name}
          field={field}
          value={values[field.name]!}
          fault={faults[field.name]}
          onChange={(value) => setValues((all) => ({ ...all, [field.name]: value }))}
        />
      ))}
      <div className="choices">
        <button type="submit" className="primary" aria-disabled={sending}>
          {requestWords.giveAnswer}
        </button>
        <Decline sending={sending} onDecide={onDecide} />
      </div>
    </form>
  );
}

/** A request to answer on another site: shows its host, since users must know where they go. */
function OpenLink({ url, sending, onDecide }: WayProps & { url: string }) {
  const words = useWords();
  const requestWords = useRequestWords();
  const hint = useId();
  const site = siteOf(url);
  return (
    <>
      {site ? (
        <p className="site">
          <a href={site.href} target="_blank" rel="noopener noreferrer" aria-describedby={hint}>
            <ExternalLink aria-hidden /> {words.openSite(site.host)}
          </a>
          <small className="address">{site.href}</small>
          <small id={hint}>{requestWords.siteHint}</small>
        </p>
      ) : (
        <p className="fault">
          {requestWords.siteRefused} <span className="address">{url}</span>
        </p>
      )}
      <div className="choices">
        {site && (
          <button type="button" className="primary" aria-disabled={sending} onClick={() => onDecide({ action: "answer" })}>
            {requestWords.siteDone}
          </button>
        )}
        <Decline sending={sending} onDecide={onDecide} />
      </div>
    </>
  );
}

/** The address, if it is one of the web; `host` as the browser will ask for it, whatever it looks like. */
function siteOf(url: string): URL | null {
  if (!URL.canParse(url)) return null;
  const site = new URL(url);
  return /^https?:$/.test(site.protocol) ? site : null;
}
