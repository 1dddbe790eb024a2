import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import type { NotificationRef } from '../../db/notifications/notification';
import { checkWebhookUrl } from '../../domain/webhook';
import type { OpsDeps } from '../../ops/call';
import { TemporalUnreachable } from '../../ops/exit-codes';
import { runOps } from '../../ops/program';
import type { TemporalOrders } from '../../ops/temporal';
import { deliveryStoryUrl } from '../../workflows/names';
import { databaseNow } from '../../db/postgres/connect';
import { openDatabaseAt, useDatabase } from '../support/database';
import { newKeyRingText } from '../../testbed/notifications';
import { asRole } from '../../testbed/roles';

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

/** The commands below one that have no others below them, with their words. */
export const leaves = (command: Command, path: readonly string[] = []): [readonly string[], Command][] =>
  command.commands.length === 0
    ? [[path, command]]
    : command.commands.flatMap((one) => leaves(one, [...path, one.name()]));

/** An example of docs/import-format.md. */
export function importExample(name: string): string {
  const page = readFileSync(join(__dirname, '../../docs/import-format.md'), 'utf8');
  return new RegExp(`<!-- test: ${name} -->\\n+\`\`\`\\w+\\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? '';
}

export const unreachable = async (): Promise<never> => {
  throw new TemporalUnreachable({
    address: '192.0.2.9:7233',
    why: 'no answer within 3 s',
    check: 'TEMPORAL_ADDRESS',
  });
};

/** A Temporal that is away. */
const AWAY: TemporalOrders = {
  cancelDelivery: unreachable,
  wakeDelivery: unreachable,
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
  now: databaseNow,
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

export const connectAsOps = (url: string) => () => openDatabaseAt(asRole(url, 'ops'));

/** Runs one command and keeps what it prints. @param args the first may be several words. */
export async function runWith(deps: Omit<OpsDeps, 'out' | 'err'>, args: readonly string[]) {
  let [out, err] = ['', ''];
  const prints = { out: (text: string) => void (out += text), err: (text: string) => void (err += text) };
  const [first = '', ...more] = args;
  const words = [...first.split(' ').filter((word) => word !== ''), ...more];
  const code = await runOps({ ...deps, ...prints }, words);
  /** Standard output, or else standard error, as JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  const json = (): any => JSON.parse(out === '' ? err : out);
  return { code, out, err, json };
}

type Outcome = Awaited<ReturnType<typeof runWith>>;
function succeeded(args: readonly string[], { code, err, json }: Outcome): unknown {
  if (code !== 0) throw new Error(`ops ${args.join(' ')} ended with ${code}: ${err}`);
  return json();
}

/** The command line over the database of a test; Temporal is away. @returns the JSON document of a command that succeeds */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
export async function opsJson(databaseUrl: string, ...args: string[]): Promise<any> {
  const deps = { ...OTHER_DEPS, connect: connectAsOps(databaseUrl) };
  return succeeded(args, await runWith(deps, [...args, '--json']));
}

/** The command line over a database of its own, for the tests of a file. */
export function useOps({
  partners = [],
  merchants = [],
}: { partners?: string[]; merchants?: string[] } = {}) {
  const database = useDatabase({ poolSize: 3 });
  const scene = {
    /** The setting WEBHOOK_KEYS; null: there are none. */
    webhookKeys: newKeyRingText() as string | null,
    /** What Temporal was asked so far, oldest first. */
    orders: [] as (NotificationRef & { readonly order: 'cancel' | 'wake' })[],
    /** What Temporal answers: whether it knows the workflow. */
    onOrder: async () => true,
    /** What Temporal answers to other calls; a call without an answer finds it away. */
    temporal: {} as Partial<TemporalOrders>,
    /** What a command sees of an interruption. */
    interruption: new AbortController(),
  };
  const asked =
    (order: 'cancel' | 'wake') =>
    async ({ notificationId, generation }: NotificationRef) => {
      scene.orders.push({ notificationId, generation, order });
      return scene.onOrder();
    };
  const temporal = (): TemporalOrders => ({
    ...AWAY,
    cancelDelivery: asked('cancel'),
    wakeDelivery: async (delivery) => void (await asked('wake')(delivery)),
    ...scene.temporal,
  });
  /** Runs one command in this process; its first argument may be several words. */
  const run = (args: readonly string[], stdin: string | Buffer = '') =>
    runWith(
      {
        ...OTHER_DEPS,
        ...(scene.webhookKeys !== null && { keyRing: () => parseKeyRing(scene.webhookKeys ?? '') }),
        temporal: async () => temporal(),
        connect: connectAsOps(database.url),
        stdin: Readable.from([Buffer.from(stdin)]),
        interruptible: () => scene.interruption.signal,
      },
      args,
    );
  /** What a command prints for people. */
  const text = async (...args: string[]) => (await run(args)).out;
  /** Runs one command with --json, which must succeed. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into documents of every form
  const json = async (...args: string[]): Promise<any> => succeeded(args, await run([...args, '--json']));
  /** A command that must end with this code and say this. */
  const refuses = async (code: number, said: string | RegExp, ...args: string[]) =>
    expect(await run(args)).toMatchObject({ code, err: expect.stringMatching(said) });
  /** Values of one field of a list. */
  // oxlint-disable-next-line typescript/no-explicit-any -- fields of every form
  const column = async (field: string, ...args: string[]): Promise<any[]> =>
    ((await json(...args)) as Record<string, unknown>[]).map((one) => one[field]);
  /** Actions of the changes of a subject, newest first. */
  const actionsOn = (subject: string): Promise<string[]> =>
    column('action', 'changes list --subject', subject);
  /** Imports rows, or a file's text, from standard input. */
  const importRows = (noun: 'products' | 'merchants', rows: unknown, ...options: string[]) =>
    run([noun, 'import', '-', '--json', ...options], typeof rows === 'string' ? rows : JSON.stringify(rows));
  /** Faults of a refused import as `row field message`. */
  async function importFaults(noun: 'products' | 'merchants', rows: unknown): Promise<string[]> {
    const outcome = await importRows(noun, rows);
    expect(outcome.code).toBe(1);
    const { faults } = outcome.json().error as Record<
      'faults',
      Record<'row' | 'field' | 'message', string>[]
    >;
    return faults.map(({ row, field, message }) => `${row} ${field} ${message}`);
  }
  beforeAll(async () => {
    for (const id of partners) await json('partners create --name Example --id', id);
    for (const id of merchants) await json('merchants create', id, '--trading-name', 'Example Shop');
  });
  return Object.assign(scene, {
    database,
    run,
    text,
    json,
    refuses,
    column,
    actionsOn,
    import: importRows,
    importFaults,
  });
}
