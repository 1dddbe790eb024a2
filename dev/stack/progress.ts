import { nowAndThen } from '../now-and-then';

const CLEAR_LINE = '\r\u001B[K';

/**
 * Numbered steps: `[1/5] Postgres ... 1.2 s`, and in between what takes long.
 * @param redraws whether the output is a terminal, on which a line can be drawn again.
 */
export function createProgress(write: (text: string) => void, steps: number, redraws = false) {
  let number = 0;
  let open: 'nothing' | 'step' | 'figure' = 'nothing';
  const closeLine = () => {
    if (open === 'step') write('\n');
    if (open === 'figure') write(CLEAR_LINE);
    open = 'nothing';
  };
  const line = (text: string) => {
    closeLine();
    write(`      ${text}\n`);
  };
  const figure = (text: string) => {
    if (open === 'step') closeLine();
    write(`${CLEAR_LINE}      ${text}`);
    open = 'figure';
  };
  const lines = nowAndThen(line);
  return {
    async step<T>(name: string, task: () => Promise<T>): Promise<T> {
      number += 1;
      const startedAt = performance.now();
      const label = `[${number}/${steps}] ${name}`;
      write(`${label} ...`);
      open = 'step';
      try {
        const result = await task();
        const took = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`;
        const sameLine = open === 'step';
        if (!sameLine) closeLine();
        write(sameLine ? ` ${took}` : `${label}: ${took}`);
        open = 'nothing';
        return result;
      } catch (error) {
        closeLine();
        throw error;
      }
    },
    /** @param moving whether it replaces the last one that moved, like `42 packages compiled`. */
    note(text: string, moving = false): void {
      if (moving && redraws) figure(text);
      else lines(text, moving);
    },
  };
}
