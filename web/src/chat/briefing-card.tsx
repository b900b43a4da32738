import { type CardPartView } from "@threadkeep/client";

import { useWords } from "../words";
import { dateTime } from "../words/format";

export function BriefingCard({ card }: { card: CardPartView }) {
  const words = useWords();
  return (
    <article className="card briefing" aria-label={`${words.briefing}: ${card.title}`} data-priority={card.priority}>
      <p className="about">
        <span className="priority">{card.priority}</span> {words.briefing} · {dateTime(card.sentAt, words.locale)}
      </p>
      <h2 dir="auto">{card.title}</h2>
      <p dir="auto">{card.summary}</p>
    </article>
  );
}
