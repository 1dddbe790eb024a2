import { Readable } from 'node:stream';
import { connectDatabase, type Database } from '../../db/connect';
import { runOps } from '../../ops/program';
import { createTestDatabase } from '../support/database';

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Standard output, or else standard error, as JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  json(): any;
}

export interface OpsUnderTest {
  readonly url: string;
  readonly database: Database;
  /** Runs one command in this process; the last argument may be what stands on standard input. */
  run(args: readonly string[], stdin?: string | Buffer): Promise<Outcome>;
  /** The same with --json, which must succeed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  json(...args: string[]): Promise<any>;
  close(): Promise<void>;
}

/** The command line over a database of its own. */
export async function createOpsUnderTest(): Promise<OpsUnderTest> {
  const clone = await createTestDatabase();
  const connect = (poolSize = 1) =>
    connectDatabase({ url: clone.url, poolSize, applicationName: 'test', statementTimeoutMs: 10_000 });
  const database = connect(3);
  const run = async (args: readonly string[], stdin: string | Buffer = '') => {
    let [out, err] = ['', ''];
    const code = await runOps(
      {
        connect,
        out: (text) => void (out += text),
        err: (text) => void (err += text),
        stdin: Readable.from([Buffer.from(stdin)]),
        actor: 'tester',
        now: () => new Date('2026-11-21T12:00:00Z'),
      },
      args,
    );
    return { code, out, err, json: () => JSON.parse(out === '' ? err : out) as unknown };
  };
  return {
    url: clone.url,
    database,
    run,
    async json(...args) {
      const outcome = await run([...args, '--json']);
      if (outcome.code !== 0)
        throw new Error(`ops ${args.join(' ')} ended with ${outcome.code}: ${outcome.err}`);
      return outcome.json();
    },
    async close() {
      await database.close();
      await clone.close();
    },
  };
}
