import { useStore } from "@threadkeep/react";
import { Bot, CalendarDays, ChevronDown, X } from "lucide-react";

import { agents } from "../state/agents";
import { hasFilters, NO_FILTERS, type Period, type SearchFilters } from "../state/search";
import { useAgentItems } from "../state/use-agent-items";
import { AgentFace } from "../ui/agent-face";
import { Menu } from "../ui/menu";
import { type MenuGroup } from "../ui/menu-list";
import { useSearchWords } from "../words/search";

const PERIODS: readonly Period[] = ["any", "today", "week", "month", "days"];

interface Props {
  filters: SearchFilters;
  onChange: (filters: SearchFilters) => void;
}

/** Chooses whose conversations are searched, and from when. */
export function SearchFiltersRow({ filters, onChange }: Props) {
  const searchWords = useSearchWords();
  const all = useStore(agents);
  const { agentId, period, from, to } = filters;
  const agentGroups: MenuGroup[] = [
    { items: [{ label: searchWords.anyAgent, icon: Bot, checked: agentId === null, run: () => onChange({ ...filters, agentId: null }) }] },
    { items: useAgentItems(agentId, ({ id }) => onChange({ ...filters, agentId: id })) },
  ];
  const periodGroups: MenuGroup[] = [
    { items: PERIODS.map((it) => ({ label: searchWords.periods[it], checked: it === period, run: () => onChange({ ...filters, period: it }) })) },
  ];
  const agent = all.find((it) => it.id === agentId);
  const shownAgent = agent?.name ?? searchWords.anyAgent;
  return (
    <div className="filters">
      <Menu label={searchWords.byAgent(shownAgent)} className={agentId === null ? "chip" : "chip set"} hasTip={false} groups={agentGroups}>
        {agent ? <AgentFace agent={agent} /> : <Bot aria-hidden />}
        <span>{shownAgent}</span>
        <ChevronDown aria-hidden />
      </Menu>
      <Menu label={searchWords.byDate(searchWords.periods[period])} className={period === "any" ? "chip" : "chip set"} hasTip={false} groups={periodGroups}>
        <CalendarDays aria-hidden />
        <span>{searchWords.periods[period]}</span>
        <ChevronDown aria-hidden />
      </Menu>
      {period === "days" && (
        <>
          <input type="date" aria-label={searchWords.firstDay} max={to || undefined} value={from} onChange={(event) => onChange({ ...filters, from: event.target.value })} />
          <span aria-hidden>–</span>
          <input type="date" aria-label={searchWords.lastDay} min={from || undefined} value={to} onChange={(event) => onChange({ ...filters, to: event.target.value })} />
        </>
      )}
      {hasFilters(filters) && (
        <button type="button" className="quiet" onClick={() => onChange(NO_FILTERS)}>
          <X aria-hidden />
          {searchWords.clearFilters}
        </button>
      )}
    </div>
  );
}
