import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';

/** Everything that the services emit while the tests run: logs, metrics, traces, histories. Searched when all have ended. */
const VARIABLE = 'PFQS_TEST_EMITTED';

/** For globalSetup. */
export function collectEmitted(folder: string): void {
  mkdirSync(folder);
  process.env[VARIABLE] = folder;
}

/** Where one source writes what it emits, in pieces of any size. @param source names it in a finding. */
export function emittedBy(source: string): (text: string) => void {
  const folder = process.env[VARIABLE];
  if (!folder) return () => undefined;
  const file = join(folder, `${source}-${randomBytes(6).toString('hex')}`);
  return (text) => {
    // Children may speak on after the run's folder has gone.
    if (existsSync(folder)) appendFileSync(file, text);
  };
}

/** Adds the metrics of a listener. One that does not answer any more has none. */
export async function emitMetrics(internalPort: number): Promise<void> {
  const page = await fetch(`http://127.0.0.1:${internalPort}/metrics`).catch(() => null);
  if (page !== null) emittedBy('metrics')(await page.text());
}

/** Adds the logs of an embedded stack: of API and worker, Postgres and Temporal. */
export function emitStackLogs(dataDir: string): void {
  for (const name of ['services.log', 'postgres.log', 'temporal.log'])
    emittedBy(`stack-${name}`)(readFileSync(join(dataDir, name), 'utf8'));
}

/** Adds every workflow of a server: histories with their payloads, memos, search attributes. */
export async function emitWorkflows(client: Client): Promise<void> {
  const emit = emittedBy('histories');
  for await (const { workflowId, runId, memo, searchAttributes } of client.workflow.list()) {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    emit(`${JSON.stringify({ workflowId, memo, searchAttributes, history }, readable)}\n`);
  }
}

/** For JSON.stringify. Payloads are bytes, mostly of JSON. */
export function readable(_name: string, value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (isBuffer(value)) return Buffer.from(value.data).toString('utf8');
  return typeof value === 'bigint' ? String(value) : value;
}

/** A Buffer has turned itself into this before it is asked for. */
function isBuffer(value: unknown): value is { readonly data: readonly number[] } {
  const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown };
  return type === 'Buffer' && Array.isArray(data);
}

/** @throws naming each secret that was emitted, by its kind and source. @returns characters searched, by source. */
export function searchEmitted(folder = process.env[VARIABLE] ?? ''): Record<string, number> {
  const searched: Record<string, number> = {};
  const leaks: string[] = [];
  for (const name of readdirSync(folder)) {
    const source = name.replace(/-[0-9a-f]+$/, '');
    const text = readFileSync(join(folder, name), 'utf8');
    searched[source] = (searched[source] ?? 0) + text.length;
    leaks.push(...findLeaks(text).map((leak) => `${source}: ${leak}`));
  }
  if (leaks.length === 0) return searched;
  throw new Error(
    `${leaks.length} secrets were emitted during the tests:\n${[...new Set(leaks)].slice(0, 40).join('\n')}`,
  );
}

/** What may never be emitted, and how it looks. */
const SECRETS = {
  'API key': /sk_(?:test|live)_[0-9A-Za-z]{32}/,
  'service key': /svc_[0-9A-Za-z]{32}/,
  'webhook secret': /whsec_[0-9A-Za-z+/]{32,}={0,2}/,
  'Service-Signature': /v1=[0-9a-f]{64}/,
  'webhook private key': /whsk_[0-9A-Za-z+/]{43}=/,
  'webhook-signature': /v1,[0-9A-Za-z+/]{43}=|v1a,[0-9A-Za-z+/]{86}==/,
  'encryption key': /[\w-]+:[0-9A-Za-z+/]{43}=/,
  'database password': /postgres(?:ql)?:\/\/[^:@/\s"]+:[^@\s"]+@/,
  'private key': /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  'Bearer token': /Bearer [0-9A-Za-z_.~+/-]{16,}/,
} as const;

/** The secrets in a text, each by its kind with the line it is in; the secret itself is left out. */
export function findLeaks(text: string): string[] {
  return text.split('\n').flatMap((line) =>
    Object.entries(SECRETS).flatMap(([kind, pattern]) => {
      const found = pattern.exec(line);
      if (found === null) return [];
      const before = line.slice(Math.max(0, found.index - 120), found.index);
      return [`${kind}: ${before}[here]`];
    }),
  );
}
