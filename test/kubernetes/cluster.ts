import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newReckoning, type Served } from '../containers/scene';
import { Handbook } from '../support/handbook';

/** What `--json` prints, before the first step. */
export const newFigures = () => ({
  ready_s: 0,
  ...newReckoning(),
  spread_after_release: false,
  node_lost_s: 0,
  policies_enforced: false,
  drained: false,
});

/** What the steps share. */
export interface Scene extends Served {
  readonly project: Cluster;
  readonly figures: ReturnType<typeof newFigures>;
}

interface Pod {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly ready: boolean;
  readonly image: string;
}

/** Pods of API processes and workers. */
export const PROCESSES = 'app.kubernetes.io/component in (api, worker)';

/** Processes of this machine: their parents, and what started them. */
const processes = () =>
  readdirSync('/proc')
    .filter((one) => /^\d+$/.test(one))
    .flatMap((pid) => {
      const read = (file: string) => readFileSync(join('/proc', pid, file), 'utf8');
      try {
        const parent = /\) \w (\d+)/.exec(read('stat'))?.[1];
        return [
          {
            pid: Number(pid),
            parent: Number(parent),
            command: read('cmdline').split('\0'),
            groups: read('cgroup'),
          },
        ];
      } catch {
        return [];
      }
    });

/** The cluster of cluster.sh, as somebody uses it who follows the page. */
export class Cluster extends Handbook {
  constructor() {
    super(['kubernetes'], (line) => /^(kubectl|helm|ops|for each) |^ops\(/.test(line));
    symlinkSync(join(__dirname, '../../deploy'), join(this.folder, 'deploy'));
  }

  /** The function of the page that runs `ops`. */
  #shell = '';
  useShell = (line: string) => void (this.#shell = this.words(line));
  override try(line: string) {
    return super.try(`${this.#shell}\n${line}`);
  }

  /** A command of `ops`. @returns its answer. */
  async ops<T = Record<string, string>>(line: string): Promise<T> {
    return JSON.parse(await this.run(`ops ${line} --json`)) as T;
  }

  /** @returns rows of text. */
  async sql(statement: string): Promise<string[]> {
    const out = await this.run(`kubectl exec quotes-rw -- psql -U postgres -d quotes -XAtqc "${statement}"`);
    return out === '' ? [] : out.split('\n');
  }

  /** @returns the pods that are not about to end, by component. */
  async pods(): Promise<{ readonly api: Pod[]; readonly worker: Pod[] }> {
    const { items } = JSON.parse(await this.run(`kubectl get pods -l '${PROCESSES}' -o json`));
    const of = (component: string) =>
      // oxlint-disable-next-line typescript/no-explicit-any -- of Kubernetes
      items.flatMap(({ metadata, spec, status }: any) =>
        metadata.deletionTimestamp === undefined &&
        metadata.labels['app.kubernetes.io/component'] === component
          ? {
              name: metadata.name,
              uid: metadata.uid,
              node: spec.nodeName,
              ready: status.containerStatuses?.[0].ready === true,
              image: spec.containers[0].image,
            }
          : [],
      );
    return { api: of('api'), worker: of('worker') };
  }

  /** Waits until two pods of each kind are ready, all of them of this image. @returns nodes of API processes and of workers. */
  async settled(
    image = '',
    limitSeconds = 240,
  ): Promise<{ readonly api: string[]; readonly worker: string[] }> {
    for (const startedAt = Date.now(); ; await sleep(500)) {
      const { api, worker } = await this.pods();
      const good = [api, worker].every(
        (pods) => pods.length === 2 && pods.every((one) => one.ready && one.image.endsWith(image)),
      );
      if (good) return { api: api.map(({ node }) => node), worker: worker.map(({ node }) => node) };
      if (Date.now() - startedAt > limitSeconds * 1_000)
        throw new Error(`not settled after ${limitSeconds} s: ${JSON.stringify({ api, worker })}`);
    }
  }

  /** Sends a signal to the process of a pod that has this word in its command, from its node. */
  signal(uid: string, word: string, signal: NodeJS.Signals): void {
    const found = processes().filter(
      ({ groups, command }) => groups.includes(`pod${uid}`) && command.includes(word),
    );
    if (found.length === 0) throw new Error(`no process of pod ${uid} has ${word} in its command`);
    for (const { pid } of found) process.kill(pid, signal);
  }

  #nodeProcesses(name: string) {
    const all = processes();
    const number = name.replace('node', '');
    const first = all.find(
      ({ command }) => command[0] === 'bash' && command[2] === '.node' && command[3] === number,
    );
    if (first === undefined) throw new Error(`${name} does not run`);
    const pids = [first.pid];
    for (const pid of pids) pids.push(...all.filter(({ parent }) => parent === pid).map((one) => one.pid));
    return pids;
  }
  /** Stops every process of a node as it is: connections to it are made, and not answered. */
  freeze(name: string): void {
    for (const pid of this.#nodeProcesses(name)) {
      try {
        process.kill(pid, 'SIGSTOP');
      } catch {
        // It has just ended.
      }
    }
  }
  /** Ends a node, with everything on it and its network. */
  end = (name: string) => void process.kill(this.#nodeProcesses(name)[0] ?? 0, 'SIGKILL');
}
