import { Readable } from 'node:stream';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { checkWebhookUrl } from '../../domain/webhook';
import type { OpsDeps } from '../../ops/call';
import { TemporalUnreachable } from '../../ops/exit-codes';
import { runOps } from '../../ops/program';
import type { DeliveryOrder, DeliveryRef, TemporalOrders } from '../../ops/temporal';
import { deliveryStoryUrl } from '../../workflows/names';
import { createTestDatabase, openDatabaseAt } from '../support/database';
import { newKeyRingText } from '../support/notifications';
import { asRole } from '../support/roles';

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
  /** The setting WEBHOOK_KEYS; null: there are none. */
  webhookKeys: string | null;
  /** Every order so far, oldest first. */
  readonly orders: (DeliveryRef & { readonly order: DeliveryOrder })[];
  /** What Temporal answers to an order: whether it knows the workflow. */
  onOrder: () => Promise<boolean>;
  /** What Temporal answers to other calls; a call without an answer finds it away. */
  temporal: Partial<TemporalOrders>;
  /** What a command sees of an interruption. */
  interruption: AbortController;
  /** Runs one command in this process; its first argument may be several words. */
  run(args: readonly string[], stdin?: string | Buffer): Promise<Outcome>;
  /** The same with --json, which must succeed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  json(...args: string[]): Promise<any>;
  /** A command that must end with this code and say this. */
  refuses(code: number, said: string | RegExp, ...args: string[]): Promise<void>;
  /** Values of one field of a list. */
  // oxlint-disable-next-line typescript/no-explicit-any -- fields of every form
  column(field: string, ...args: string[]): Promise<any[]>;
  /** Actions of the changes of a subject, newest first. */
  actionsOn(subject: string): Promise<string[]>;
  close(): Promise<void>;
}

export const unreachable = async (): Promise<never> => {
  throw new TemporalUnreachable({ address: '192.0.2.9:7233', why: 'no answer within 1.5 s' });
};

/** A Temporal that is away. */
const AWAY: TemporalOrders = {
  orderDelivery: unreachable,
  startRetention: unreachable,
  describeDeployment: unreachable,
  setCurrent: unreachable,
  ramp: unreachable,
};

/** The parts that a test leaves out: URLs are checked by their form alone, and Temporal is away. */
export const OTHER_DEPS: Omit<OpsDeps, 'connect' | 'out' | 'err'> = {
  stdin: Readable.from([]),
  actor: 'tester',
  now: () => new Date(),
  interruptible: () => new AbortController().signal,
  retentionAt: () => '03:15',
  keyRing: () => {
    throw new Error('no webhook keys: set WEBHOOK_KEYS');
  },
  checkTarget: async (url) => checkWebhookUrl(url),
  storyUrl: (delivery) => deliveryStoryUrl('http://temporal.example/', 'quotes', delivery),
  temporal: async () => AWAY,
};

const connectAsOps = (url: string) => () =>
  connectDatabase({
    url: asRole(url, 'ops'),
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: 10_000,
  });

/** Runs one command and keeps what it prints. @param args the first may be several words. */
export async function runWith(deps: Omit<OpsDeps, 'out' | 'err'>, args: readonly string[]): Promise<Outcome> {
  let [out, err] = ['', ''];
  const prints = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const [first = '', ...more] = args;
  const words = [...first.split(' ').filter((word) => word !== ''), ...more];
  const code = await runOps({ ...deps, ...prints }, words);
  return { code, out, err, json: () => JSON.parse(out === '' ? err : out) as unknown };
}

function succeeded(args: readonly string[], outcome: Outcome): unknown {
  const { code, err } = outcome;
  if (code !== 0) throw new Error(`ops ${args.join(' ')} ended with ${code}: ${err}`);
  return outcome.json();
}

/** The command line over the database of a test; Temporal is away. @returns the JSON document of a command that succeeds */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
export async function opsJson(databaseUrl: string, ...args: string[]): Promise<any> {
  const deps = { ...OTHER_DEPS, connect: connectAsOps(databaseUrl) };
  return succeeded(args, await runWith(deps, [...args, '--json']));
}

/** The command line over a database of its own. */
export async function createOpsUnderTest(): Promise<OpsUnderTest> {
  const clone = await createTestDatabase();
  const database = openDatabaseAt(clone.url, { poolSize: 3, statementTimeoutMs: 10_000 });
  const state: Pick<OpsUnderTest, 'webhookKeys' | 'orders' | 'onOrder' | 'interruption' | 'temporal'> = {
    webhookKeys: newKeyRingText(),
    orders: [],
    onOrder: async () => true,
    interruption: new AbortController(),
    temporal: {},
  };
  const run = (args: readonly string[], stdin: string | Buffer = '') =>
    runWith(
      {
        ...OTHER_DEPS,
        ...(state.webhookKeys !== null && { keyRing: () => parseKeyRing(state.webhookKeys ?? '') }),
        temporal: async () => ({
          ...AWAY,
          async orderDelivery(delivery, order) {
            state.orders.push({ ...delivery, order });
            return state.onOrder();
          },
          ...state.temporal,
        }),
        connect: connectAsOps(clone.url),
        stdin: Readable.from([Buffer.from(stdin)]),
        interruptible: () => state.interruption.signal,
        now: () => new Date('2026-11-21T12:00:00Z'),
      },
      args,
    );
  const json = async (...args: string[]) => succeeded(args, await run([...args, '--json']));
  const column = async (field: string, ...args: string[]) =>
    ((await json(...args)) as Record<string, unknown>[]).map((one) => one[field]);
  return Object.assign(state, {
    url: clone.url,
    database,
    run,
    json,
    async refuses(code: number, said: string | RegExp, ...args: string[]) {
      expect(await run(args)).toMatchObject({ code, err: expect.stringMatching(said) });
    },
    column,
    actionsOn: (subject: string) => column('action', 'changes list --subject', subject) as Promise<string[]>,
    async close() {
      await database.close();
      await clone.close();
    },
  });
}
