import { requestProblemOf, type PageView_RatedAnswerView, type Problem, type RatedAnswerView } from "@threadkeep/client";
import { ChevronRight, ThumbsDown, ThumbsUp } from "lucide-react";
import { useCallback, useEffect, useId, useState } from "react";

import { api } from "../api/api";
import { Markdown } from "../markdown/markdown";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useFeedbackWords } from "../words/feedback";
import { dateTime } from "../words/format";

const AT_ONCE = 20;

type Which = "all" | RatedAnswerView["rating"];

/** How users rate an agent's answers, and the turns that they share. */
export function AgentFeedback({ agentId }: { agentId: string }) {
  const words = useWords();
  const feedbackWords = useFeedbackWords();
  const id = useId();
  const [which, setWhich] = useState<Which>("all");
  const { items, hasMore, problem, readMore } = useFeedback(agentId, which);
  return (
    <div className="form feedback">
      <p className="hint">{feedbackWords.listHint}</p>
      <div className="field">
        <label htmlFor={id}>{feedbackWords.which}</label>
        <select id={id} value={which} onChange={(event) => setWhich(event.target.value as Which)}>
          <option value="all">{feedbackWords.all}</option>
          <option value="up">{feedbackWords.up}</option>
          <option value="down">{feedbackWords.down}</option>
        </select>
      </div>
      {items === null && !problem && <p className="hint">{words.loading}</p>}
      {items?.length === 0 && <p className="hint">{which === "all" ? feedbackWords.none : feedbackWords.noneOfThese}</p>}
      {problem && (
        <p className="hint" role="alert">
          {describeProblem(words, problem)}
        </p>
      )}
      <ul className="cards">
        {items?.map((it) => (
          <RatedAnswer key={it.messageId} rated={it} />
        ))}
      </ul>
      {hasMore && (
        <button type="button" onClick={() => void readMore()}>
          {words.more}
        </button>
      )}
    </div>
  );
}

function RatedAnswer({ rated }: { rated: RatedAnswerView }) {
  const words = useWords();
  const feedbackWords = useFeedbackWords();
  const { rating, note, model, cost, ratedAt, own, question, answer } = rated;
  const Icon = rating === "up" ? ThumbsUp : ThumbsDown;
  const about = [model, cost && `${cost.amount} ${cost.currency}`, dateTime(ratedAt, words.locale), own && feedbackWords.own].filter(Boolean);
  return (
    <li className="card rated-answer" data-rating={rating}>
      <p className="about">
        <Icon role="img" aria-label={rating === "up" ? feedbackWords.good : feedbackWords.bad} />
        <small>{about.join(" · ")}</small>
        {answer === undefined && <small className="status">{feedbackWords.notShared}</small>}
      </p>
      <p dir="auto" className={note ? "note" : "note none"}>
        {note || feedbackWords.noNote}
      </p>
      {answer !== undefined && (
        <details>
          <summary>
            <ChevronRight aria-hidden className="fold" />
            <span>{feedbackWords.showTurn}</span>
          </summary>
          {question !== undefined && (
            <>
              <h3>{feedbackWords.question}</h3>
              <p dir="auto" className="question-text">
                {question}
              </p>
            </>
          )}
          <h3>{feedbackWords.answer}</h3>
          <Markdown text={answer} isPassage />
        </details>
      )}
    </li>
  );
}

/** An agent's ratings as far as they were read; null until the first have arrived. */
function useFeedback(agentId: string, which: Which) {
  const [items, setItems] = useState<readonly RatedAnswerView[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const read = useCallback(
    async (after: string | null, signal?: AbortSignal) => {
      try {
        const query = { limit: AT_ONCE, cursor: after, rating: which === "all" ? null : which };
        const page = await api.get<PageView_RatedAnswerView>(`/api/agents/${agentId}/feedback`, query, signal);
        setItems((known) => [...(after && known ? known : []), ...page.items]);
        setCursor(page.nextCursor);
        setProblem(null);
      } catch (error) {
        if (!signal?.aborted) setProblem(requestProblemOf(error));
      }
    },
    [agentId, which],
  );
  useEffect(() => {
    const leaving = new AbortController();
    setItems(null);
    setCursor(null);
    void read(null, leaving.signal);
    return () => leaving.abort();
  }, [read]);
  return { items, problem, hasMore: cursor !== null, readMore: () => read(cursor) };
}
