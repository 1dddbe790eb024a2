/** Enough to see that something moves, in a log that keeps every line. */
const FIGURE_LINE_MS = 15_000;

/** Where no line can be drawn again: of what moves (`42 packages compiled`), one line now and then; all the rest. */
export function nowAndThen(say: (text: string) => void): (text: string, moving?: boolean) => void {
  let saidAt = performance.now();
  return (text, moving = false) => {
    if (moving && performance.now() - saidAt < FIGURE_LINE_MS) return;
    saidAt = performance.now();
    say(text);
  };
}
