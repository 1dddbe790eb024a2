/** Numbered steps: `[1/5] Postgres ... 1.2 s`, and in between what takes long. */
export function createProgress(write: (text: string) => void, steps: number) {
  let number = 0;
  let lineOpen = false;
  const breakLine = () => {
    if (lineOpen) write('\n');
    lineOpen = false;
  };
  return {
    async step<T>(name: string, task: () => Promise<T>): Promise<T> {
      number += 1;
      const startedAt = performance.now();
      const label = `[${number}/${steps}] ${name}`;
      write(`${label} ...`);
      lineOpen = true;
      try {
        const result = await task();
        const took = `${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`;
        write(lineOpen ? ` ${took}` : `${label}: ${took}`);
        lineOpen = false;
        return result;
      } catch (error) {
        breakLine();
        throw error;
      }
    },
    note(text: string): void {
      breakLine();
      write(`      ${text}\n`);
    },
  };
}
