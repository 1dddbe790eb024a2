import { connectDatabase, type Database, type DatabaseConfig } from '../db/postgres/connect';
import { QUOTE_STATEMENTS_AT_A_TIME } from '../db/quotes/store';

/**
 * A page takes 2 ms and the largest count 40, so two connections serve some hundred calls a second, of
 * which a partner has one (sharedPool).
 */
const READS_AT_A_TIME = 2;

/** The pools of an API process (docs/operations/speed.md). Together with LISTEN: its limit of sessions. */
export interface ApiPools {
  /** For the inserts of quotes, as many as run at a time, so that each soon has every statement prepared. */
  readonly inserts: Database;
  /** For quotes (keys and merchants that are not in memory), lenders, and the process itself. */
  readonly own: Database;
  /** For what partners store. */
  readonly writes: Database;
  /** For what partners read. */
  readonly reads: Database;
}

interface Wanted extends Pick<DatabaseConfig, 'url' | 'statementTimeoutMs'> {
  /** Gets what Postgres reports beside its answers. */
  readonly onNotice?: (text: string, pool: keyof ApiPools) => void;
}

/** @param poolSize 2 or more, half of which is for what partners store, and half for what they may never hold up */
export function openPools({ onNotice, ...wanted }: Wanted, poolSize: number) {
  const open = (pool: keyof ApiPools, applicationName: string, size: number, forPartners = false) => {
    const told = onNotice && { onNotice: (text: string) => onNotice(text, pool) };
    // Before a process is ready it opens every connection that a quote may need (start-api.ts).
    const kind = { byIndex: forPartners, keepsIdle: !forPartners };
    return connectDatabase({ ...wanted, ...told, applicationName, poolSize: size, ...kind });
  };
  const forWrites = Math.floor(poolSize / 2);
  const pools: ApiPools = {
    inserts: open('inserts', 'pfqs api quotes', QUOTE_STATEMENTS_AT_A_TIME),
    own: open('own', 'pfqs api', poolSize - forWrites),
    writes: open('writes', 'pfqs api partners', forWrites, true),
    reads: open('reads', 'pfqs api pages', READS_AT_A_TIME, true),
  };
  return {
    ...pools,
    close: () => Promise.all(Object.values<Database>({ ...pools }).map((pool) => pool.close())),
  };
}
