import { ChevronRight, Lightbulb, Search, Wrench } from "lucide-react";
import { memo, useState } from "react";

import { faultsOf, isWaitingForUser, latest, outcomeOf, summary, tookOf, type Now } from "../../turn/activity";
import { type Step } from "../../turn/segments";
import { useChunk } from "../../ui/use-chunk";
import { WithCode } from "../../ui/with-code";
import { useWords } from "../../words";

interface Props extends Now {
  steps: readonly Step[];
  /** Whether it is in progress. */
  live: boolean;
}

const loadSteps = () => import("./activity-steps");

/** What the agent did between two texts: one line with the current step, which expands into all steps. */
export const Activity = memo(
  function Activity({ steps, live, ...now }: Props) {
    const words = useWords();
    const [isOpen, setOpen] = useState(false);
    const [isNear, setNear] = useState(false);
    const list = useChunk(loadSteps, isOpen || isNear);
    const Icon = iconOf(steps);
    return (
      <details
        className="activity"
        role="group"
        aria-label={words.activity}
        data-live={live || undefined}
        onToggle={(event) => setOpen(event.currentTarget.open)}
      >
        <summary onPointerEnter={() => setNear(true)} onFocus={() => setNear(true)}>
          {live ? <i className={isWaitingForUser(steps, now.waiting) ? "beat asks" : "beat"} aria-hidden /> : <Icon aria-hidden />}
          <span className="line">
            <span className="summary-text" dir="auto">
              <WithCode text={live ? latest(words, steps, now) : summary(words, steps)} />
            </span>
            {!live && <Remarks steps={steps} />}
          </span>
          <ChevronRight aria-hidden className="fold" />
        </summary>
        {isOpen && list && <list.ActivitySteps steps={steps} {...now} />}
      </details>
    );
  },
  (before, after) =>
    before.live === after.live &&
    (before.waiting.size === 0 ? after.waiting.size === 0 : before.waiting === after.waiting) &&
    before.progress === after.progress &&
    before.steps.length === after.steps.length &&
    before.steps.every((it, index) => it === after.steps[index]),
);

function Remarks({ steps }: { steps: readonly Step[] }) {
  const words = useWords();
  const facts = [outcomeOf(words, steps), tookOf(words, steps)].filter(Boolean);
  const { faults, isUnknown } = faultsOf(words, steps);
  if (!facts.length && !faults) return null;
  return (
    <small className="remarks">
      {facts.map((it) => ` · ${it}`)}
      {faults && (
        <>
          {" · "}
          <span className={isUnknown ? "unsure" : "wrong"}>{faults}</span>
        </>
      )}
    </small>
  );
}

function iconOf(steps: readonly Step[]) {
  if (steps.some((it) => it.type === "tool_call" || it.type === "step")) return Wrench;
  return steps.some((it) => it.type === "retrieval") ? Search : Lightbulb;
}
