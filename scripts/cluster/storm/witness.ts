import type { Machine } from '../machine';

/** Writes at a Postgres that no longer leads, but may not know it: whatever it acknowledges must be in the cluster afterwards. */
export interface Witness {
  readonly tried: () => number;
  readonly acknowledged: readonly string[];
  /** Tries on a machine's own Postgres, once a second for so long, beside everything else. */
  watch(machine: Machine, ms: number): Promise<void>;
}

/** Longest wait for one commit: what hangs has not been acknowledged. */
const COMMIT_S = 2;

export function openWitness(): Witness {
  const acknowledged: string[] = [];
  let tried = 0;
  return {
    acknowledged,
    tried: () => tried,
    async watch(machine, ms) {
      const until = performance.now() + ms;
      while (performance.now() < until) {
        tried += 1;
        const word = `${machine.name}-${tried}`;
        const sql = `insert into storm_words values ('${word}')`;
        const psql = ['psql', '--no-psqlrc', '-h', '/srv/quotes/postgres', '-d', 'quotes', '-c', sql];
        await machine.run('postgres', ['timeout', '-s', 'KILL', String(COMMIT_S), ...psql]).then(
          () => acknowledged.push(word),
          () => undefined,
        );
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    },
  };
}
