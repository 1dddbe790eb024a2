import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { endChild, nextMessage, startChild } from './children';
import type { FailMessage, HangMessage, ListeningMessage, ReceivedMessage } from './messages';

/** The partners' endpoints, in a process of their own, so that their cost is nobody's whom we measure. */
export interface Receivers {
  readonly child: ChildProcess;
  readonly urls: readonly string[];
  /** Settings that let our HTTP client reach them. */
  readonly environment: Readonly<Record<string, string>>;
  /** When each event first arrived, by event id, in monotonic milliseconds. */
  readonly arrivals: Map<string, number>;
  /** Called for each first arrival. */
  onArrival: (eventId: string) => void;
  /** These accept and do not answer, all others do; what waits at the others is answered now. */
  hang(hosts: readonly string[]): void;
  /** These answer 503 at once, all others 200. */
  fail(hosts: readonly string[]): void;
  close(): Promise<void>;
}

export async function startReceivers(directory: string, hosts: readonly string[]): Promise<Receivers> {
  const day = 86_400_000;
  const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
  const authority = await createAuthority('Bench authority', validity);
  const names = hosts.map((value) => ({ type: 'dns', value }) as const);
  const { cert, key } = await issueCertificate(authority, names, validity);
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const args = [file('receiver.pem', cert), file('receiver-key.pem', key)];
  const child = startChild('bench/delivery/receiver.ts', {
    args,
    logFile: join(directory, 'receiver.log'),
  });
  const { port } = await nextMessage<ListeningMessage>(child);

  const arrivals = new Map<string, number>();
  const receivers: Receivers = {
    child,
    urls: hosts.map((host) => `https://${host}:${port}/webhooks`),
    environment: {
      ENVIRONMENT: 'development',
      WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
      WEBHOOK_ALLOWED_PORTS: String(port),
      WEBHOOK_HOSTS: hosts.map((host) => `${host}=127.0.0.1`).join(','),
      WEBHOOK_CA_FILE: file('ca.pem', authority.cert),
    },
    arrivals,
    onArrival: () => undefined,
    hang: (which) => void child.send({ hang: which } satisfies HangMessage),
    fail: (which) => void child.send({ fail: which } satisfies FailMessage),
    close: () => endChild(child),
  };
  child.on('message', ({ received }: ReceivedMessage) => {
    for (const [eventId, atMs] of received) {
      if (arrivals.has(eventId)) continue;
      arrivals.set(eventId, atMs);
      receivers.onArrival(eventId);
    }
  });
  return receivers;
}
