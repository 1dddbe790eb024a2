import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestTls } from '../../testbed/tls';
import type { Bench } from './bench';
import { nextMessage, startChild } from './children';
import type { Behaviour, FromReceiver } from './receiver';

/** The endpoints of some partners, in a process of their own, so that their cost is not part of what is measured. */
export interface Receivers {
  readonly pid: number | undefined;
  readonly urls: readonly string[];
  /** When each event first arrived, by event id, in monotonic milliseconds. */
  readonly arrivals: Map<string, number>;
  onArrival: (eventId: string) => void;
  behave(behaviour: Behaviour): void;
}

/** Of all host names of endpoints: one certificate with a name for each of a thousand would slow every handshake. */
const DOMAIN = 'bench.example';

/**
 * Starts a process of endpoints for each group of names.
 * @returns the groups, and settings with which our HTTP client reaches all of them.
 */
export async function startReceivers(
  bench: Bench,
  namesOfGroups: readonly (readonly string[])[],
): Promise<{ groups: Receivers[]; environment: Readonly<Record<string, string>> }> {
  const { ca, cert, key } = await createTestTls([{ type: 'dns', value: `*.${DOMAIN}` }]);
  const file = (name: string, text: string) => {
    const path = join(bench.directory, name);
    writeFileSync(path, text);
    return path;
  };
  const args = [file('receiver.pem', cert), file('receiver-key.pem', key)];
  const targets: string[] = [];
  const groups: Receivers[] = [];
  for (const names of namesOfGroups) {
    const child = startChild(bench, 'bench/harness/receiver.ts', { args });
    const { port } = await nextMessage<{ port: number }>(child);
    const own = names.map((name) => `${name}.${DOMAIN}:${port}`);
    targets.push(...own);
    const receivers: Receivers = {
      pid: child.pid,
      urls: own.map((host) => `https://${host}/webhooks`),
      arrivals: new Map(),
      onArrival: () => undefined,
      behave: (behaviour) => void child.send(behaviour),
    };
    child.on('message', ({ received }: FromReceiver) => {
      for (const [eventId, atMs] of received) {
        if (receivers.arrivals.has(eventId)) continue;
        receivers.arrivals.set(eventId, atMs);
        receivers.onArrival(eventId);
      }
    });
    groups.push(receivers);
  }
  const environment = {
    ENVIRONMENT: 'development',
    WEBHOOK_LOCAL_TARGETS: targets.join(','),
    WEBHOOK_CA_FILE: file('ca.pem', ca),
  };
  return { groups, environment };
}
