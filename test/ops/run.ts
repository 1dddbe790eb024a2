import { Readable } from 'node:stream';
import { connectDatabase } from '../../db/postgres/connect';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import type { NotificationRef } from '../../db/notifications/notification';
import { checkWebhookUrl } from '../../domain/webhook';
import type { OpsDeps } from '../../ops/call';
import { TemporalUnreachable } from '../../ops/exit-codes';
import { runOps } from '../../ops/program';
import type { DeliveryOrder, TemporalOrders } from '../../ops/temporal';
import { deliveryStoryUrl } from '../../workflows/names';
import { useDatabase, type OpenTestDatabase } from '../support/database';
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

/** A product as an import file has it. */
export const PRODUCT_ROW = {
  merchant_id: 'M300001',
  credit_product: 'Classic 12',
  lender: 'lender_a',
  number_of_repayments: 12,
  apr: '9.9',
  minimum_loan_amount: '250.00',
  maximum_loan_amount: '25000.00',
};

export interface OpsUnderTest {
  readonly database: OpenTestDatabase;
  /** The setting WEBHOOK_KEYS; null: there are none. */
  webhookKeys: string | null;
  /** Every order so far, oldest first. */
  readonly orders: (NotificationRef & { readonly order: DeliveryOrder })[];
  /** What Temporal answers to an order: whether it knows the workflow. */
  onOrder: () => Promise<boolean>;
  /** What Temporal answers to other calls; a call without an answer finds it away. */
  temporal: Partial<TemporalOrders>;
  /** What a command sees of an interruption. */
  interruption: AbortController;
  /** Runs one command in this process; its first argument may be several words. */
  run(args: readonly string[], stdin?: string | Buffer): Promise<Outcome>;
  /** What a command prints for people. */
  text(...args: string[]): Promise<string>;
  /** Runs one command with --json, which must succeed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  json(...args: string[]): Promise<any>;
  /** A command that must end with this code and say this. */
  refuses(code: number, said: string | RegExp, ...args: string[]): Promise<void>;
  /** Values of one field of a list. */
  // oxlint-disable-next-line typescript/no-explicit-any -- fields of every form
  column(field: string, ...args: string[]): Promise<any[]>;
  /** Actions of the changes of a subject, newest first. */
  actionsOn(subject: string): Promise<string[]>;
  /** Imports rows, or a file's text, from standard input. */
  import(noun: 'products' | 'merchants', rows: unknown, ...options: string[]): Promise<Outcome>;
}

export const unreachable = async (): Promise<never> => {
  throw new TemporalUnreachable({
    address: '192.0.2.9:7233',
    why: 'no answer within 1.5 s',
    check: 'TEMPORAL_ADDRESS',
  });
};

/** A Temporal that is away. */
const AWAY: TemporalOrders = {
  orderDelivery: unreachable,
  replayRunning: unreachable,
  startRetention: unreachable,
  describeDeployment: unreachable,
  whatIsMissing: unreachable,
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
  embedded: () => false,
  keyRing: () => {
    throw new Error('no webhook keys: set WEBHOOK_KEYS');
  },
  checkTarget: async (url) => checkWebhookUrl(url),
  storyUrl: (delivery) => deliveryStoryUrl('http://temporal.example/', 'quotes', delivery),
  temporal: async () => AWAY,
  workflows: () => ({ folder: 'workflows' }),
};

export const connectAsOps = (url: string) => () =>
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

/** The command line over a database of its own, for the tests of a file. */
export function useOps(): OpsUnderTest {
  const database = useDatabase({ poolSize: 3 });
  const ops: OpsUnderTest = {
    database,
    webhookKeys: newKeyRingText(),
    orders: [],
    onOrder: async () => true,
    interruption: new AbortController(),
    temporal: {},
    run: (args, stdin = '') =>
      runWith(
        {
          ...OTHER_DEPS,
          ...(ops.webhookKeys !== null && { keyRing: () => parseKeyRing(ops.webhookKeys ?? '') }),
          temporal: async () => ({
            ...AWAY,
            async orderDelivery(delivery, order) {
              ops.orders.push({ ...delivery, order });
              return ops.onOrder();
            },
            ...ops.temporal,
          }),
          connect: connectAsOps(database.url),
          stdin: Readable.from([Buffer.from(stdin)]),
          interruptible: () => ops.interruption.signal,
          now: () => new Date('2026-11-21T12:00:00Z'),
        },
        args,
      ),
    text: async (...args) => (await ops.run(args)).out,
    json: async (...args) => succeeded(args, await ops.run([...args, '--json'])),
    async refuses(code, said, ...args) {
      expect(await ops.run(args)).toMatchObject({ code, err: expect.stringMatching(said) });
    },
    column: async (field, ...args) =>
      ((await ops.json(...args)) as Record<string, unknown>[]).map((one) => one[field]),
    actionsOn: (subject) => ops.column('action', 'changes list --subject', subject),
    import: (noun, rows, ...options) =>
      ops.run(
        [noun, 'import', '-', '--json', ...options],
        typeof rows === 'string' ? rows : JSON.stringify(rows),
      ),
  };
  return ops;
}
