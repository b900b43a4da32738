/** Has code coloured by the worker: a few lines at a time, so that showing them takes no long task either. */

import type { Answered, Asked, Line } from "./messages";

const MOST_LINES = 100;
/** After so long without an answer, the worker is lost in some code: that stays plain. */
const PATIENCE_MS = 20_000;

/** The beginning of some code, coloured. */
export interface Coloured {
  text: string;
  lines: readonly Line[];
}

/** "lost": it was asked of a worker that is gone. */
type Answer = Line[] | null | "lost";

let worker: Worker | null = null;
let alarm: ReturnType<typeof setTimeout> | undefined;
let blocks = 0;
/** Who waits for an answer, the longest first. */
const waiting = new Map<number, (answer: Answer) => void>();

function start(): Worker {
  const started = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "colouring" });
  started.onmessage = ({ data: { block, lines } }: MessageEvent<Answered>) => {
    const answer = waiting.get(block);
    waiting.delete(block);
    answer?.(lines);
    watch();
  };
  started.onerror = (event) => {
    event.preventDefault();
    replaceWorker([...waiting.keys()]); // it could not be loaded: nor could another one
  };
  return started;
}

function watch(): void {
  clearTimeout(alarm);
  if (waiting.size) alarm = setTimeout(() => replaceWorker([...waiting.keys()].slice(0, 1)), PATIENCE_MS);
}

/** Ends the worker. The blocks that it failed at stay plain; the others ask the next one. */
function replaceWorker(failedAt: readonly number[]): void {
  clearTimeout(alarm);
  worker?.terminate();
  worker = null;
  const left = [...waiting];
  waiting.clear();
  for (const [block, answer] of left) answer(failedAt.includes(block) ? null : "lost");
}

/** One block of code, which may grow. */
export class Colouring {
  private block = ++blocks;
  private code = "";
  private isComplete = false;
  /** All that was asked for, each line with its end. */
  private asked = "";
  private lines: readonly Line[] = [];
  private isPlain = false;
  /** Who knows where the lines that were asked for end. */
  private askedOf: Worker | null = null;

  constructor(
    private readonly language: string,
    private readonly onColoured: (coloured: Coloured) => void,
  ) {}

  /** Colours the code as it is now. The last line is left out as long as more of it may come. */
  show(code: string, isComplete: boolean): void {
    if (!`${code}\n`.startsWith(this.asked)) this.restart();
    this.code = code;
    this.isComplete = isComplete;
    if (!waiting.has(this.block)) this.askForMore();
  }

  /** What is still answered is dropped. */
  end(): void {
    waiting.delete(this.block);
    worker?.postMessage({ forgotten: this.block } satisfies Asked);
  }

  private restart(): void {
    this.end();
    this.block = ++blocks;
    this.asked = "";
    this.lines = [];
  }

  private askForMore(): void {
    if (this.isPlain) return;
    try {
      worker ??= start();
    } catch {
      this.isPlain = true; // no workers here
      return;
    }
    if (this.askedOf !== worker) this.restart();
    this.askedOf = worker;
    const lines = `${this.code}\n`.slice(this.asked.length).split("\n").slice(0, this.isComplete ? -1 : -2);
    if (!lines.length) return;
    const text = lines.slice(0, MOST_LINES).join("\n");
    this.asked += `${text}\n`;
    waiting.set(this.block, (answer) => this.answered(answer));
    worker.postMessage({ block: this.block, language: this.language, text } satisfies Asked);
    watch();
  }

  private answered(answer: Answer): void {
    if (answer === null) this.isPlain = true;
    else if (answer !== "lost") {
      this.lines = [...this.lines, ...answer];
      this.onColoured({ text: this.asked.slice(0, -1), lines: this.lines });
    }
    this.askForMore();
  }
}
