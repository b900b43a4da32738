/** Whether what runs in a sandbox still behaves. */

const LOOK_MS = 2500;
/** A busy machine, or one that was asleep, is no reason to stop anything. */
const MOST_SILENT_LOOKS = 6;
const MOST_PER_SECOND = 200;

export type Misbehaviour = "silent" | "flooding";

/** Calls `onMisbehaviour` once when the sandbox says nothing for long, or too much. */
export class Vigil {
  #silentLooks = 0;
  #second = 0;
  #heardInSecond = 0;
  #timer: ReturnType<typeof setInterval>;

  constructor(private readonly onMisbehaviour: (what: Misbehaviour) => void) {
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  /** Counts a message of the sandbox. */
  heard(): void {
    this.#silentLooks = 0;
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) this.#heardInSecond = 0;
    this.#second = second;
    if (++this.#heardInSecond === MOST_PER_SECOND) this.#report("flooding");
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    // The browser holds up what nobody sees.
    if (document.hidden) this.#silentLooks = 0;
    else if (++this.#silentLooks > MOST_SILENT_LOOKS) this.#report("silent");
  }

  #report(what: Misbehaviour): void {
    this.end();
    this.onMisbehaviour(what);
  }
}
