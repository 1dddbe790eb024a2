#!/usr/bin/env node
/// <reference types="node" />
import { createHmac, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ApiError } from './api-error.js';
import { createClient } from './client.js';
import { sleep } from './retry.js';
import type { NotificationSummary } from './types.js';
import { readWebhookKeys } from './verify-webhook.js';

const HELP = `Usage: API_KEY=sk_test_… BASE_URL=https://… partner-finance listen --forward-to URL [--position FILE]

Forwards the webhooks of your sandbox to a receiver on your machine. It reads them with your key, so it needs no registered
endpoint and no tunnel. Each has Service-Signature and the headers of Standard Webhooks, by a secret that is printed at the start. The
events of an application are sent in order: one that is not answered with 2xx is sent again, and the later ones wait for it.

  --forward-to URL  where to POST, such as http://localhost:3000/webhooks
  --position FILE   keeps the secret and what was forwarded, so that the next start continues
                    (default: .partner-finance-listen.json)
  --help            this text

Without a position it begins with the events of the last five minutes. It stops with Ctrl-C. Of your 100 calls a minute
it spreads the second half over the rest of the minute, so that quotes with the same key are answered.
`;

const POLL_MS = 2_000;
/** Events do not become visible in the order of their ids; none does later than this. */
const LOOK_BACK_MS = 300_000;
const ANSWER_TIMEOUT_MS = 15_000;
const LONGEST_BACKOFF_MS = 30_000;

/** What the file keeps. It is replaced after each event that was answered 2xx, so that a kill loses none. */
interface Position {
  readonly secret: string;
  /** Events created before this moment are not read any more. */
  from: string;
  /** The events since then that were answered 2xx, by notification. */
  done: Record<string, Pick<NotificationSummary, 'created_at' | 'credit_application_id' | 'sequence'>>;
}

class UsageError extends Error {}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'forward-to': { type: 'string' },
      position: { type: 'string', default: '.partner-finance-listen.json' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  // oxlint-disable-next-line node/no-process-env -- a command that partners run
  const { API_KEY: apiKey = '', BASE_URL: baseUrl = '' } = process.env;
  const forwardTo = values['forward-to'] ?? '';
  if (positionals.join(' ') !== 'listen') throw new UsageError('The command is `listen`.');
  if (!/^https?:/.test(forwardTo) || !URL.canParse(forwardTo))
    throw new UsageError(
      '--forward-to must be the URL of your receiver, such as http://localhost:3000/webhooks.',
    );
  if (!baseUrl.startsWith('https://'))
    throw new UsageError('BASE_URL must be the address that you were given.');
  if (!apiKey.startsWith('sk_test_')) throw new UsageError('API_KEY must be a sandbox key, sk_test_….');
  return { forwardTo, baseUrl, apiKey, file: resolve(values.position) };
}

/** @throws when there is a file that cannot be read: beginning anew would lose events. */
function readPosition(file: string): Position {
  try {
    const position = JSON.parse(readFileSync(file, 'utf8')) as Position;
    // A receiver would refuse every event that is signed with anything else.
    if (!position.secret.startsWith('whsec_')) throw new TypeError('its secret does not begin with whsec_');
    readWebhookKeys([position.secret]);
    return position;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new Error(`${file} cannot be read`, { cause: error });
    const from = new Date(Date.now() - LOOK_BACK_MS).toISOString();
    return { secret: `whsec_${randomBytes(32).toString('base64')}`, from, done: {} };
  }
}

function writePosition(file: string, position: Position): void {
  writeFileSync(`${file}.new`, JSON.stringify(position), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

const say = (text: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
/** Codes of Node for a certificate whose signer it does not know. */
const UNKNOWN = /^UNABLE_TO_|SELF_SIGNED/;
const reason = (error: unknown) => {
  const { message, cause } = error as Error;
  if (!(cause instanceof Error)) return message;
  // A name with several addresses has an error for each, and none of its own.
  const causes: readonly Error[] = cause instanceof AggregateError ? cause.errors : [cause];
  const why = causes.map((one) => one.message).join(', ');
  const unknown = UNKNOWN.test((cause as NodeJS.ErrnoException).code ?? '');
  return `${message}: ${why}${unknown ? ' (NODE_EXTRA_CA_CERTS names the file of its authority, or its own when it is self-signed)' : ''}`;
};

async function listen({ forwardTo, baseUrl, apiKey, file }: NonNullable<ReturnType<typeof readArguments>>) {
  // No quotes are asked for, so no partner is named.
  const client = createClient({ baseUrl, apiKey, partnerId: '' });
  const position = readPosition(file);
  writePosition(file, position);
  process.stdout.write(`Forwarding the sandbox of ${baseUrl} to ${forwardTo}
Secret: ${position.secret}
Position: ${file}
`);
  const key = Buffer.from(position.secret.slice('whsec_'.length), 'base64');
  /** Events that a finished poll has seen, and that wait. */
  const seen = new Set<string>();
  /** Of an event that was not answered 2xx. */
  const backoff = new Map<string, { readonly untilMs: number; readonly waitMs: number }>();

  async function post(one: NotificationSummary, body: string): Promise<boolean> {
    const timestamp = Math.floor(Date.now() / 1_000);
    const own = createHmac('sha256', key).update(`${timestamp}.${body}`).digest('hex');
    const standard = createHmac('sha256', key)
      .update(`${one.event_id}.${timestamp}.${body}`)
      .digest('base64');
    const beganMs = performance.now();
    const what = `${one.credit_application_id ?? 'test'} ${one.sequence ?? '-'} ${one.event_type}`;
    try {
      const answer = await fetch(forwardTo, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'service-signature': `t=${timestamp},v1=${own}`,
          'webhook-id': one.event_id,
          'webhook-timestamp': String(timestamp),
          'webhook-signature': `v1,${standard}`,
          ...(one.sequence === null && { 'service-test': 'true' }),
        },
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      });
      await answer.body?.cancel();
      const hint = answer.status === 401 ? ' (verify with the secret above, not with public keys)' : '';
      say(`${what} -> ${answer.status} in ${Math.round(performance.now() - beganMs)} ms${hint}`);
      return answer.ok;
    } catch (error) {
      say(`${what} -> ${reason(error)}`);
      return false;
    }
  }

  /** @returns whether the next event of its application may follow. */
  async function forward(one: NotificationSummary): Promise<boolean> {
    const id = one.notification_id;
    const { untilMs = 0, waitMs = POLL_MS / 2 } = backoff.get(id) ?? {};
    if (performance.now() < untilMs) return false;
    const { payload } = await client.getNotification(id);
    if (payload !== null && !(await post(one, payload))) {
      const nextMs = Math.min(waitMs * 2, LONGEST_BACKOFF_MS);
      backoff.set(id, { untilMs: performance.now() + nextMs, waitMs: nextMs });
      return false;
    }
    const { created_at, credit_application_id, sequence } = one;
    position.done[id] = { created_at, credit_application_id, sequence };
    backoff.delete(id);
    writePosition(file, position);
    return true;
  }

  const lastDone = (applicationId: string) =>
    Object.values(position.done)
      .filter((done) => done.credit_application_id === applicationId)
      .reduce((highest, { sequence }) => Math.max(highest, sequence ?? 0), 0);

  async function poll(): Promise<void> {
    const queues = new Map<string, NotificationSummary[]>();
    for await (const one of client.listNotifications({ created_from: position.from })) {
      if (one.notification_id in position.done) continue;
      const queue = one.credit_application_id ?? one.notification_id;
      queues.set(queue, [one, ...(queues.get(queue) ?? [])]);
    }
    const waiting = [...queues.values()].flat();
    // The list has the newest first.
    for (const queue of [...queues.values()].toReversed()) {
      for (const one of queue.toSorted((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0))) {
        const { credit_application_id: application, sequence, notification_id: id } = one;
        // An earlier event is visible before a later one, but a page may have been read before it was. The next poll has it; if not, it
        // is older than the position.
        const follows = application === null || lastDone(application) + 1 === sequence || seen.has(id);
        if (!follows || !(await forward(one))) break;
      }
    }
    for (const one of waiting) seen.add(one.notification_id);
    for (const id of Object.keys(position.done)) seen.delete(id);
    advance(waiting.filter((one) => !(one.notification_id in position.done)));
  }

  /** Moves on to the newest event, less the time to look back, or to the oldest one that still waits. */
  function advance(waiting: readonly NotificationSummary[]): void {
    const createdMs = (ones: readonly { readonly created_at: string }[]) =>
      ones.map((one) => Date.parse(one.created_at));
    const newestMs = Math.max(...createdMs([...Object.values(position.done), ...waiting]));
    const fromMs = Math.min(newestMs - LOOK_BACK_MS, ...createdMs(waiting));
    if (!(fromMs > Date.parse(position.from))) return;
    position.from = new Date(fromMs).toISOString();
    const kept = Object.entries(position.done).filter(([, done]) => Date.parse(done.created_at) >= fromMs);
    position.done = Object.fromEntries(kept);
    writePosition(file, position);
  }

  for (;;) {
    try {
      await poll();
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) throw error;
      say(`the service cannot be read: ${reason(error)}`);
    }
    await sleep(POLL_MS);
  }
}

try {
  const given = readArguments();
  if (given === null) process.stdout.write(HELP);
  else await listen(given);
} catch (error) {
  const usage =
    error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
  process.stderr.write(`${reason(error)}\n${usage ? `\n${HELP}` : ''}`);
  process.exitCode = usage ? 2 : 1;
}
