import { Ellipsis } from "lucide-react";

import { send } from "../api/client";
import { download } from "../api/download";
import { ROUTES } from "../api/schema";
import { toast } from "../state/toasts";
import { type Thread } from "../thread/thread";
import { problemOf } from "../thread/thread";
import { useWords } from "../words";
import { Menu } from "./menu";
import { toldProblem } from "./problem-bar";

const ONE = "/api/conversations/{conversation_id}";

/** What is done rarely: reports, exports, a summary for the model. */
export function ThreadMenu({ thread, title, running }: { thread: Thread; title: string; running: boolean }) {
  const words = useWords();
  const path = `/api/conversations/${thread.id}`;
  const run = async (work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (error) {
      toast(toldProblem(words, problemOf(error)));
    }
  };
  const compact = async () => {
    await send("POST", `${path}/compact`, {});
    await thread.refresh();
    toast(words.compacted);
  };
  const items = [
    ROUTES.has(`GET ${ONE}/report`) && {
      name: words.reportHtml,
      work: () => download(`${path}/report`, { format: "html" }, `${title}.html`),
    },
    ROUTES.has(`GET ${ONE}/report`) && {
      name: words.reportMarkdown,
      work: () => download(`${path}/report`, { format: "md" }, `${title}.md`),
    },
    ROUTES.has(`GET ${ONE}/export`) && {
      name: words.exportJson,
      work: () => download(`${path}/export`, { format: "json" }, `${title}.json`),
    },
    ROUTES.has(`POST ${ONE}/compact`) && !running && { name: words.compact, work: compact },
  ].filter((it) => it !== false);
  if (!items.length) return null;
  return (
    <Menu label={words.moreActions} groups={[{ items: items.map(({ name, work }) => ({ label: name, run: () => void run(work) })) }]}>
      <Ellipsis aria-hidden />
    </Menu>
  );
}
