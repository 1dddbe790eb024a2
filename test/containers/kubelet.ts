/**
 * Does what nodes do around the containers of pods, in a container on their networks: it runs the probes, and passes connections on to pods
 * that are ready. kubernetes.ts writes `pods.json` for it and reads its `seen.json`. Node runs this file as it stands.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, get } from 'node:http';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: number };
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}
type Kind = 'startup' | 'readiness' | 'liveness';
export interface Watched {
  readonly name: string;
  /** Of its container; another one is probed from the start. */
  readonly starts: number;
  readonly probes: Readonly<Record<Kind, Probe>>;
  /** Whether connections are passed on to it while it is ready. */
  readonly serves: boolean;
}
export interface Seen {
  ready: boolean;
  /** A probe that failed as often as it may. */
  failed: Kind | null;
  asked: Record<Kind, number>;
}
/** A port that is listened on, and that of the pods. */
export type Ports = Readonly<Record<string, number>>;

const seen: Record<string, Seen> = {};
let pods: readonly Watched[] = [];
const nameOf = ({ name, starts }: Watched) => `${name} ${starts}`;

const ask = (host: string, { httpGet: { path, port }, timeoutSeconds = 1 }: Probe) =>
  new Promise<boolean>((resolve) => {
    const request = get({ host, path, port, agent: false, timeout: timeoutSeconds * 1_000 }, (answer) => {
      answer.resume();
      const status = answer.statusCode ?? 0;
      resolve(status >= 200 && status < 400);
    });
    request.once('timeout', () => request.destroy(new Error('too late')));
    request.once('error', () => resolve(false));
  });

/** Asks until `ends` says so, which hears each success, and failures from the one that counts on. */
async function probe(pod: Watched, kind: Kind, state: Seen, ends: (ok: boolean) => boolean): Promise<void> {
  const { periodSeconds = 10, failureThreshold = 3 } = pod.probes[kind];
  let failures = 0;
  while (pods.some((one) => nameOf(one) === nameOf(pod))) {
    failures = (await ask(`${pod.name}.pod`, pod.probes[kind])) ? 0 : failures + 1;
    state.asked[kind] += 1;
    if ((failures === 0 || failures >= failureThreshold) && ends(failures === 0)) return;
    await sleep(periodSeconds * 1_000);
  }
}

async function watch(pod: Watched): Promise<void> {
  const state: Seen = { ready: false, failed: null, asked: { startup: 0, readiness: 0, liveness: 0 } };
  seen[nameOf(pod)] = state;
  const failing = (kind: Kind) => (ok: boolean) => {
    if (!ok) state.failed = kind;
    return ok ? kind === 'startup' : true;
  };
  await probe(pod, 'startup', state, failing('startup'));
  if (state.failed !== null) return;
  const readiness = probe(pod, 'readiness', state, (ok) => {
    state.ready = ok;
    return false;
  });
  await Promise.all([readiness, probe(pod, 'liveness', state, failing('liveness'))]);
}

const ready = () => pods.filter((pod) => pod.serves && seen[nameOf(pod)]?.ready === true);

function main([folder = '', ports = '{}']: readonly string[]): void {
  let next = 0;
  for (const [port, target] of Object.entries(JSON.parse(ports) as Ports))
    createServer((from) => {
      const among = ready();
      const pod = among[next++ % among.length];
      if (pod === undefined) return from.destroy();
      const to = connect(target, `${pod.name}.pod`);
      for (const [one, other] of [
        [from, to],
        [to, from],
      ] as const)
        one
          .on('error', () => other.destroy())
          .on('close', () => other.destroy())
          .pipe(other);
    }).listen(Number(port));
  // For the proxy that stands in front.
  createHttpServer((_request, answer) => answer.writeHead(ready().length > 0 ? 200 : 503).end()).listen(
    9_000,
  );
  setInterval(() => {
    pods = JSON.parse(readFileSync(`${folder}/pods.json`, 'utf8')) as Watched[];
    for (const pod of pods) if (!(nameOf(pod) in seen)) void watch(pod);
    writeFileSync(`${folder}/seen.part`, JSON.stringify(seen));
    renameSync(`${folder}/seen.part`, `${folder}/seen.json`);
  }, 100);
}

if (process.argv[1]?.endsWith('kubelet.ts')) main(process.argv.slice(2));
