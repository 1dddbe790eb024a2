import { Readable } from 'node:stream';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { checkWebhookUrl } from '../../domain/webhook-url';
import type { DeliveryOrder, DeliveryRef, OpsDeps, OrderAnswer } from '../../ops/call';
import { runOps } from '../../ops/program';
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
  /** What Temporal says to the next orders. */
  orderAnswer: OrderAnswer;
  /** What commands are told of builds. */
  deployment: OpsDeps['deployment'];
  /** What Temporal says to the next removals. */
  startRetention: OpsDeps['startRetention'];
  /** What a command sees of an interruption. */
  interruption: AbortController;
  /** Called for each order before it is answered. */
  onOrder: () => Promise<void>;
  /** Runs one command in this process; the last argument may be what stands on standard input. */
  run(args: readonly string[], stdin?: string | Buffer): Promise<Outcome>;
  /** The same with --json, which must succeed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  json(...args: string[]): Promise<any>;
  close(): Promise<void>;
}

const UNREACHABLE = { kind: 'unreachable', address: '127.0.0.1:1', why: 'refused' } as const;

/** The parts that a test leaves out: URLs are held against their form alone, and Temporal is not there. */
export const OTHER_DEPS: Pick<
  OpsDeps,
  | 'keyRing'
  | 'checkTarget'
  | 'orderDelivery'
  | 'storyUrl'
  | 'deployment'
  | 'interruptible'
  | 'retentionAt'
  | 'startRetention'
> = {
  interruptible: () => new AbortController().signal,
  retentionAt: () => '03:15',
  startRetention: async () => UNREACHABLE,
  keyRing: () => {
    throw new Error('no webhook keys: set WEBHOOK_KEYS');
  },
  checkTarget: async (url) => checkWebhookUrl(url),
  orderDelivery: async () => UNREACHABLE,
  storyUrl: (delivery) => deliveryStoryUrl('http://temporal.example/', 'quotes', delivery),
  deployment: {
    describe: async () => UNREACHABLE,
    setCurrent: async () => UNREACHABLE,
    ramp: async () => UNREACHABLE,
  },
};

/** The command line over the database of a test; Temporal is not there. @returns the JSON document of a command that succeeds */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
export async function opsJson(databaseUrl: string, ...args: string[]): Promise<any> {
  let [out, err] = ['', ''];
  const connect = () =>
    connectDatabase({
      url: asRole(databaseUrl, 'ops'),
      poolSize: 1,
      applicationName: 'test',
      statementTimeoutMs: 10_000,
    });
  const code = await runOps(
    {
      ...OTHER_DEPS,
      connect,
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      stdin: Readable.from([]),
      actor: 'tester',
      now: () => new Date(),
    },
    [...args, '--json'],
  );
  if (code !== 0) throw new Error(`ops ${args.join(' ')} ended with ${code}: ${err}`);
  return JSON.parse(out);
}

/** The command line over a database of its own. */
export async function createOpsUnderTest(): Promise<OpsUnderTest> {
  const clone = await createTestDatabase();
  const connect = (poolSize = 1) =>
    connectDatabase({
      url: asRole(clone.url, 'ops'),
      poolSize,
      applicationName: 'test',
      statementTimeoutMs: 10_000,
    });
  const database = openDatabaseAt(clone.url, { poolSize: 3, statementTimeoutMs: 10_000 });
  const state: Pick<
    OpsUnderTest,
    'webhookKeys' | 'orders' | 'orderAnswer' | 'onOrder' | 'interruption' | 'deployment' | 'startRetention'
  > = {
    webhookKeys: newKeyRingText(),
    orders: [],
    orderAnswer: { kind: 'taken' },
    onOrder: async () => undefined,
    interruption: new AbortController(),
    deployment: OTHER_DEPS.deployment,
    startRetention: OTHER_DEPS.startRetention,
  };
  const run = async (args: readonly string[], stdin: string | Buffer = '') => {
    let [out, err] = ['', ''];
    const code = await runOps(
      {
        ...OTHER_DEPS,
        ...(state.webhookKeys !== null && { keyRing: () => parseKeyRing(state.webhookKeys ?? '') }),
        orderDelivery: async (delivery, order) => {
          state.orders.push({ ...delivery, order });
          await state.onOrder();
          return state.orderAnswer;
        },
        deployment: state.deployment,
        startRetention: () => state.startRetention(),
        connect,
        out: (text) => void (out += text),
        err: (text) => void (err += text),
        stdin: Readable.from([Buffer.from(stdin)]),
        actor: 'tester',
        interruptible: () => state.interruption.signal,
        now: () => new Date('2026-11-21T12:00:00Z'),
      },
      args,
    );
    return { code, out, err, json: () => JSON.parse(out === '' ? err : out) as unknown };
  };
  return Object.assign(state, {
    url: clone.url,
    database,
    run,
    async json(...args: string[]) {
      const outcome = await run([...args, '--json']);
      if (outcome.code !== 0)
        throw new Error(`ops ${args.join(' ')} ended with ${outcome.code}: ${outcome.err}`);
      return outcome.json();
    },
    async close() {
      await database.close();
      await clone.close();
    },
  });
}
