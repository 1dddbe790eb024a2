import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectDatabase } from '../../db/postgres/connect';
import { appendChange } from '../../db/audit/change-log';
import { listLenders } from '../../db/applications/lenders';
import { findEndpoint } from '../../db/endpoints/endpoints';
import { issueServiceKey, revokeServiceKey } from '../../db/keys';
import { callJson, Unreachable } from '../calls';
import type { DemoOutcome, StackInfo } from '../stack/types';
import {
  openApplication,
  receivedOf,
  SHORT_STORY,
  STORIES,
  takeQuote,
  walk,
  type DemoQuote,
  type DemoSurroundings,
  type Story,
} from './walk';

/** There is no stack to show anything on; the message says what to do. */
export class NoStack extends Error {
  override readonly name = 'NoStack';
}

/** What stack.json says of the stack that runs. @throws NoStack */
async function runningStack(dataDir: string): Promise<StackInfo> {
  const file = join(dataDir, 'stack.json');
  const advice = 'Start it in another terminal with `npm start`, wait for its curl, and run this again.';
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) throw new NoStack(`The stack is not running (there is no ${file}). ${advice}`);
  const info = JSON.parse(text) as StackInfo;
  if (info.temporalAddress === null)
    throw new NoStack(
      'The stack runs without Temporal, so no webhook would arrive. Do what the warning of `npm start` says, and start it again.',
    );
  try {
    await callJson({ url: `${info.internalUrl}/health` });
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    throw new NoStack(`The stack is not running (nobody answers at ${info.internalUrl}). ${advice}`);
  }
  return info;
}

interface DemoOptions {
  /** Of the running stack. */
  readonly dataDir: string;
  readonly write: (text: string) => void;
  readonly now: () => number;
}

/**
 * Shows the whole way on the running stack: a quote, applications opened from its link, what their lenders tell, and what
 * the partner's receiver got of it.
 * @throws NoStack when none runs there.
 */
export async function runDemo({ dataDir, write, now }: DemoOptions): Promise<DemoOutcome> {
  const surroundings = await surroundingsOf(dataDir);
  const { info, endpointUrl } = surroundings;
  try {
    write(`A checkout asks for a quote of £1,000.00 with a deposit of £100.00.\n`);
    const quote = await takeQuote(surroundings, `DEMO-${now().toString(36)}`);
    write(`  ${quote.quoteId}\n  summary  ${quote.summary}\n  link     ${quote.linkOf('lender_a')}\n`);
    const elsewhere = endpointUrl?.startsWith(`${info.receiverUrl}/`) !== true;
    const results = [];
    for (const [at, story] of STORIES.entries()) {
      const { applicationId, expected } = await tellStory(surroundings, story, quote, now() + at, write);
      if (elsewhere)
        write(`  1 to ${expected} go to ${endpointUrl ?? 'nobody: no endpoint is registered'}\n`);
      else results.push(await showReceived(surroundings, applicationId, expected, write));
    }
    const outcome = elsewhere ? 'elsewhere' : results.every(Boolean) ? 'arrived' : 'missing';
    const endings: Readonly<Record<DemoOutcome, string>> = {
      arrived: `All arrived, verified, in order. The same with every byte: ${info.receiverUrl}`,
      missing: 'Not everything arrived verified and in order: see above.',
      elsewhere: `The sandbox endpoint of ${info.partnerId} is not the demo's receiver. What was sent: GET ${info.apiUrl}/v1/notifications`,
    };
    write(`\n${endings[outcome]}\n`);
    if (info.temporalUiUrl !== null) write(`How each was delivered: ${info.temporalUiUrl}\n`);
    return outcome;
  } finally {
    await surroundings.close();
  }
}

/**
 * Opens an application from a new quote and has its lender tell a few events, whether they arrive or not.
 * @returns its id, and how many events that makes for the partner.
 * @throws NoStack when none runs there.
 */
export async function moveApplication({
  dataDir,
  now,
}: Omit<DemoOptions, 'write'>): Promise<{ applicationId: string; events: number }> {
  const surroundings = await surroundingsOf(dataDir);
  try {
    const quote = await takeQuote(surroundings, `DEMO-${now().toString(36)}`);
    const link = quote.linkOf(SHORT_STORY.lender);
    const applicationId = await openApplication(surroundings, SHORT_STORY, link, now());
    await walk(surroundings, applicationId, SHORT_STORY);
    return { applicationId, events: SHORT_STORY.statuses.length + 1 };
  } finally {
    await surroundings.close();
  }
}

async function tellStory(
  surroundings: DemoSurroundings,
  story: Story,
  quote: DemoQuote,
  seed: number,
  write: (text: string) => void,
): Promise<{ applicationId: string; expected: number }> {
  const applicationId = await openApplication(surroundings, story, quote.linkOf(story.lender), seed);
  write(`\n${applicationId}, ${story.lender}: ${story.title}\n`);
  write(`  the lender tells: ${story.statuses.join(', ')}\n`);
  await walk(surroundings, applicationId, story);
  // The opening itself is the first.
  return { applicationId, expected: story.statuses.length + 1 };
}

/** @returns whether the receiver got all of them, verified and in order. */
async function showReceived(
  surroundings: DemoSurroundings,
  applicationId: string,
  expected: number,
  write: (text: string) => void,
): Promise<boolean> {
  const received = await receivedOf(surroundings, applicationId, expected);
  for (const { sequence, eventType, verified, reference } of received) {
    const mark = verified ? 'signature verified' : 'NOT VERIFIED';
    write(
      `  receiver got  ${String(sequence).padStart(2)}  ${eventType.padEnd(38)} ${mark}  (${reference})\n`,
    );
  }
  const first = received.filter((one, at) => received.findIndex((o) => o.sequence === one.sequence) === at);
  const inOrder = first.every(({ sequence }, at) => sequence === at + 1) && first.length === expected;
  if (!inOrder) write(`  expected 1 to ${expected}, in this order\n`);
  return inOrder && received.every(({ verified }) => verified);
}

/** The running stack, with service keys that last an hour and are revoked at the end, and where the partner's events go. */
async function surroundingsOf(dataDir: string) {
  const info = await runningStack(dataDir);
  const { databaseUrl, partnerId } = info;
  const ca = await readFile(info.caFile, 'utf8');
  const database = connectDatabase({
    url: databaseUrl,
    poolSize: 1,
    applicationName: 'pfqs demo',
    statementTimeoutMs: 10_000,
  });
  const { db } = database;
  const actor = 'demo';
  const issue = (lender: Story['lender']) =>
    db.transaction(async (tx) => {
      const binding = { lender, environment: 'sandbox' } as const;
      const issued = await issueServiceKey(tx, { name: 'npm run demo', ...binding, expiresInSeconds: 3_600 });
      const subject = issued.summary.keyId;
      await appendChange(tx, { actor, action: 'service-keys.create', subject, details: binding });
      return issued;
    });
  const issued = { lender_a: await issue('lender_a'), lender_b: await issue('lender_b') };
  const endpoint = await findEndpoint(db, partnerId, 'sandbox');
  return {
    info,
    ca,
    endpointUrl: endpoint?.url ?? null,
    lenderNames: new Map((await listLenders(db)).map(({ lender, name }) => [lender, name])),
    serviceKeys: { lender_a: issued.lender_a.key, lender_b: issued.lender_b.key },
    async close() {
      await db.transaction(async (tx) => {
        for (const { keyId: subject } of [issued.lender_a.summary, issued.lender_b.summary]) {
          await revokeServiceKey(tx, subject);
          await appendChange(tx, { actor, action: 'service-keys.revoke', subject, details: {} });
        }
      });
      await database.close();
    },
  };
}
