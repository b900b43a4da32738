import { useStore } from "@threadkeep/react";
import { useEffect, useMemo, useRef, useState } from "react";

import { theme } from "../state/preferences";
import { LongText } from "../ui/long-text";
import { useWords } from "../words";
import { describe, planOf } from "./option";

/** A chart that a tool returned; one that cannot be drawn is shown as its data. */
export function Chart({ data }: { data: unknown }) {
  const words = useWords();
  const colours = useStore(theme);
  const plan = useMemo(() => planOf(data), [data]);
  const place = useRef<HTMLDivElement>(null);
  const [broken, setBroken] = useState(false);
  useEffect(() => {
    if (!plan) return;
    let end = () => {};
    let wanted = true;
    import("./draw")
      .then(({ draw }) => {
        if (wanted && place.current) end = draw(place.current, plan, colours);
      })
      .catch(() => setBroken(true));
    return () => {
      wanted = false;
      end();
    };
  }, [plan, colours]);
  if (!plan || broken)
    return (
      <div className="chart broken">
        <p className="hint">{words.chartBroken}</p>
        <LongText text={JSON.stringify(data, null, 2) ?? ""} />
      </div>
    );
  return <div ref={place} className="chart" role="img" aria-label={describe(plan, words.chart)} />;
}
