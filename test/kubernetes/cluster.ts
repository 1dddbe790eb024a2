import { symlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { allProcesses, argumentsOf, signal, withChildren } from '../../dev/processes';
import { newReckoning, type Served } from '../containers/scene';
import { commandsOf, Handbook } from '../support/handbook';

/** What `--json` prints, before the first step. */
export const newFigures = () => ({
  ready_s: 0,
  ...newReckoning(),
  spread_after_release: false,
  node_lost_s: 0,
  policies_enforced: false,
  drained: false,
});

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

/** Empty when it has ended. */
const controlGroupsOf = (pid: number) => readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');

/** The cluster of cluster.sh, as somebody uses it who follows the page. */
export class Cluster extends Handbook {
  static readonly commands = commandsOf(['kubernetes'], (line) =>
    /^(kubectl|helm|ops|for each) |^(ops|apis|workers)\(/.test(line),
  );

  constructor() {
    super(Cluster.commands);
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
  async signal(uid: string, word: string, name: NodeJS.Signals): Promise<void> {
    const found: number[] = [];
    for (const pid of await allProcesses())
      if ((await argumentsOf(pid)).includes(word) && (await controlGroupsOf(pid)).includes(`pod${uid}`))
        found.push(pid);
    if (found.length === 0) throw new Error(`no process of pod ${uid} has ${word} in its command`);
    for (const pid of found) signal(pid, name);
  }

  /** The first process of a node, with which everything on it ends. */
  async #firstOf(name: string): Promise<number> {
    for (const pid of await allProcesses()) {
      const [program, , what, number] = await argumentsOf(pid);
      if (program === 'bash' && what === '.node' && `node${number}` === name) return pid;
    }
    throw new Error(`${name} does not run`);
  }
  /** Stops every process of a node as it is: connections to it are made, and not answered. */
  async freeze(name: string): Promise<void> {
    for (const pid of await withChildren([await this.#firstOf(name)])) signal(pid, 'SIGSTOP');
  }
  /** Ends a node, with everything on it and its network. */
  end = async (name: string) => void signal(await this.#firstOf(name), 'SIGKILL');
}
