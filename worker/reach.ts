import { connect } from 'node:net';
import { getDomain } from 'tldts';
import type { Outage, ReachedBy } from '../activities';
import { queueName } from '../db/notifications/notification';
import {
  evidence,
  isOfThisMachine,
  judgeReach,
  LONGEST_OUTAGE_MS,
  SEEN_FOR_MS,
  type EndpointSeen,
} from '../domain/our-outage';
import type { SentWebhook } from '../domain/delivery-outcome';
import { codeOf } from '../outbound/faults';
import { withTimeout } from '../timing/timing';

/** Deliveries that wait for the network ask again at most so often, all together: 50 a second. */
const BETWEEN_ASKS_MS = 20;
const LONGEST_WAIT_MS = 600_000;
/** An answer of the probe counts for this time. */
const PROBE_FOR_MS = 5_000;
/** Wait of an attempt that began in an outage and failed after its end. */
const AFTER_MS = 1_000;
/** Without any attempt for so long nothing is known of the network any more. */
const FORGET_AFTER_MS = 300_000;

export interface NetworkOutage {
  readonly since: Date;
  /** Endpoints that were tried in its last minute. */
  readonly endpoints: number;
}

interface ReachDeps {
  /** Asked when fewer than ten endpoints were tried, and all failed. Null: no probe is configured. */
  readonly probe: (() => Promise<boolean>) | null;
  readonly tryEveryMs: number;
  readonly monotonicMs: () => number;
  readonly nowMs: () => number;
  readonly onBegin: (outage: NetworkOutage) => void;
  readonly onEnd: (outage: NetworkOutage & { readonly until: Date }) => void;
}

export type Reach = ReturnType<typeof createReach>;

/**
 * Decides whether attempts fail because of our own network, from what this process has seen: each worker
 * may have a way out of its own. During such an outage each endpoint is tried at intervals, by one of the
 * deliveries that wait for it.
 */
export function createReach(deps: ReachDeps) {
  const { probe, tryEveryMs, monotonicMs, nowMs, onBegin, onEnd } = deps;
  const seen = new Map<string, EndpointSeen>();
  const triedAtMs = new Map<string, number>();
  let nextAskMs = 0;
  let now: { readonly beganMs: number; readonly since: Date } | null = null;
  let last = { beganMs: Number.POSITIVE_INFINITY, endedMs: 0, sinceMs: 0 };
  let probed: { readonly atMs: number; readonly answer: Promise<boolean> } | null = null;

  const asDate = (atMs: number) => new Date(nowMs() - (monotonicMs() - atMs));
  const counted = () => [...seen.values()].filter(({ atMs }) => atMs > monotonicMs() - SEEN_FOR_MS).length;
  /** Whether an outage lasts that still excuses failures. */
  const excuses = () => now !== null && monotonicMs() - now.beganMs < LONGEST_OUTAGE_MS;

  function answersProbe(): Promise<boolean> {
    if (probe === null) return Promise.resolve(true);
    if (probed === null || monotonicMs() - probed.atMs > PROBE_FOR_MS)
      probed = { atMs: monotonicMs(), answer: probe().catch(() => false) };
    return probed.answer;
  }

  function end(): void {
    if (now === null) return;
    const { beganMs, since } = now;
    last = { beganMs, endedMs: monotonicMs(), sinceMs: since.getTime() };
    now = null;
    triedAtMs.clear();
    nextAskMs = 0;
    onEnd({ since, until: new Date(nowMs()), endpoints: counted() });
  }

  async function notice(key: string, one: EndpointSeen): Promise<void> {
    const before = seen.get(key);
    if (before !== undefined && before.atMs > one.atMs) return;
    const addresses = one.addresses.length > 0 ? one.addresses : (before?.addresses ?? []);
    seen.set(key, { ...one, addresses });
    const judge = () => judgeReach(evidence([...seen.values()]), monotonicMs());
    if (one.reached) {
      if (now !== null && judge().kind === 'fine') end();
      return;
    }
    if (now !== null) return;
    for (const [endpoint, { atMs }] of seen)
      if (atMs < monotonicMs() - FORGET_AFTER_MS) seen.delete(endpoint);
    const reach = judge();
    if (reach.kind === 'fine' || (reach.kind === 'perhaps' && (await answersProbe()))) return;
    // Others may have noticed, or reached somebody, while the probe was asked.
    if (now !== null || judge().kind === 'fine') return;
    now = { beganMs: reach.sinceMs, since: asDate(reach.sinceMs) };
    onBegin({ since: now.since, endpoints: counted() });
  }

  /** How a delivery whose failure is ours waits, or null when it is the partner's. */
  function excuse(beganMs: number): Outage | null {
    if (excuses()) return { waitMs: tryEveryMs, sinceMs: now?.since.getTime() ?? null };
    // It began in an outage that has ended since.
    return beganMs >= last.beganMs && beganMs <= last.endedMs
      ? { waitMs: Math.min(tryEveryMs, AFTER_MS), sinceMs: last.sinceMs }
      : null;
  }

  return {
    /** Makes an attempt, and gives a failure that is ours the outcome `ours`. */
    async judged(of: ReachedBy, send: () => Promise<SentWebhook>): Promise<SentWebhook> {
      const beganMs = monotonicMs();
      const { hostname } = new URL(of.url);
      const sent = await send().catch((error: unknown) => {
        if (!isOfThisMachine(codeOf(error))) throw error;
        return ofThisMachine(codeOf(error), Math.round(monotonicMs() - beganMs));
      });
      const reached = sent.outcome.httpStatus !== null;
      await notice(queueName(of), {
        partnerId: of.partnerId,
        domain: getDomain(hostname) ?? hostname,
        addresses: sent.addresses,
        atMs: beganMs,
        reached,
      });
      const { outcome } = sent;
      if (outcome.kind === 'ours') return { ...sent, outcome: { ...outcome, ...wait(excuse(beganMs)) } };
      const ours = reached || outcome.kind === 'delivered' ? null : excuse(beganMs);
      if (ours === null || outcome.kind === 'delivered') return sent;
      const { failure, durationMs } = outcome;
      return { ...sent, outcome: { kind: 'ours', failure, httpStatus: null, durationMs, ...ours } };
    },
    /**
     * Whether an endpoint may be tried now. Null: there is no outage. `waitMs` 0: there is one, and this
     * is the endpoint's next try.
     * @param queue names the endpoint
     */
    turn(queue: string): Outage | null {
      if (now === null || !excuses()) return null;
      const atMs = monotonicMs();
      const sinceMs = now.since.getTime();
      const nextMs = (triedAtMs.get(queue) ?? Number.NEGATIVE_INFINITY) + tryEveryMs;
      if (nextMs <= atMs) {
        triedAtMs.set(queue, atMs);
        return { waitMs: 0, sinceMs };
      }
      nextAskMs = Math.min(Math.max(nextMs, nextAskMs + BETWEEN_ASKS_MS), atMs + LONGEST_WAIT_MS);
      return { waitMs: Math.ceil(nextAskMs - atMs), sinceMs };
    },
    /** Since when this process reaches nobody; null when it does. */
    cutOffSince(): Date | null {
      const newestMs = Math.max(...[...seen.values()].map(({ atMs }) => atMs));
      if (now !== null && newestMs < monotonicMs() - FORGET_AFTER_MS) end();
      return now?.since ?? null;
    },
  };

  function wait(outage: Outage | null): Outage {
    return outage ?? { waitMs: tryEveryMs, sinceMs: null };
  }
}

function ofThisMachine(code: string, durationMs: number): SentWebhook {
  const outcome = {
    kind: 'ours',
    failure: 'connect',
    httpStatus: null,
    durationMs,
    waitMs: 0,
    sinceMs: null,
  } as const;
  return { outcome, answer: null, address: null, addresses: [], detail: code, clockSkewMs: null };
}

const PROBE_TIMEOUT_MS = 5_000;

/**
 * Asks whether a TCP connection can be opened, which sends nothing.
 * @param target `host:port`; an IPv6 address in brackets
 */
export function createProbe(
  target: string,
  resolve: (hostname: string) => Promise<readonly string[]>,
): () => Promise<boolean> {
  const { hostname, port } = new URL(`tcp://${target}`);
  const host = hostname.replaceAll(/[[\]]/g, '');
  return async () => {
    const connecting = async () => {
      const [address = host] = await resolve(host);
      const socket = connect({ host: address, port: Number(port) });
      try {
        await new Promise((connected, failed) => socket.once('connect', connected).on('error', failed));
      } finally {
        socket.destroy();
      }
    };
    return withTimeout(connecting(), PROBE_TIMEOUT_MS, 'the probe').then(
      () => true,
      () => false,
    );
  };
}
