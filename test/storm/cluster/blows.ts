import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ops, untilReady } from '../../../scripts/cluster/bring-up';
import { untilTrue, type Machine } from '../../../scripts/cluster/machine';
import { type MachineName, plugCable, pullCable } from '../../../scripts/cluster/network';
import type { UnitName } from '../../../scripts/cluster/units';
import { type ClusterScene, synchronousStandbys } from './scene';
import type { Load } from './load';

export type Victim =
  'postgres_leader' | 'standby' | 'etcd' | 'temporal' | 'api' | 'worker' | 'proxy' | 'machine' | 'release';

export interface Blow {
  readonly victim: Victim;
  readonly what: string;
  /** The longest pause of deliveries that it may cause, in seconds. Default: 60. */
  readonly deliveriesS?: number;
  /** Causes the fault, and then does what only an operator would do to repair it. */
  readonly strike: (scene: ClusterScene, load: Load) => Promise<void>;
}

const FREEZE_MS = 60_000;

async function leader({ cluster }: ClusterScene): Promise<Machine> {
  const name = await cluster.patroni.leader();
  if (name === undefined) throw new Error('nobody leads');
  return cluster.machines[name];
}
const other = ({ cluster }: ClusterScene, { name }: Machine): Machine =>
  cluster.machines[name === 'a' ? 'b' : 'a'];
const untilLed = ({ cluster: { patroni } }: ClusterScene, { name }: Machine) =>
  untilTrue(`${name} leads`, 120_000, async () => (await patroni.leader()) === name);

/** A unit that is taken away, and brought back after a while. */
const away =
  (take: 'kill' | 'freeze', bring: 'start' | 'thaw', says: string) =>
  (unit: Victim & UnitName, name: MachineName, ms: number): Blow => ({
    victim: unit,
    what: `${unit} of ${name} ${says} ${ms / 1_000} s`,
    ...(unit === 'temporal' && { deliveriesS: 30 }),
    async strike({ cluster: { machines } }) {
      await machines[name][take](unit);
      await sleep(ms);
      await machines[name][bring](unit);
    },
  });
const killed = away('kill', 'start', 'killed, back after');
const frozen = away('freeze', 'thaw', 'frozen for');

/** Postgres alone is killed: Patroni notices it and promotes the standby. */
const leaderCrashes: Blow = {
  victim: 'postgres_leader',
  what: 'Postgres of the leader killed',
  async strike(scene) {
    const old = await leader(scene);
    await old.killPostgres();
    await untilLed(scene, other(scene, old));
  },
};

const leaderGone: Blow = {
  victim: 'postgres_leader',
  what: 'Postgres and Patroni of the leader killed, its data deleted',
  async strike(scene) {
    const old = await leader(scene);
    await old.kill('patroni');
    rmSync(join(old.srv, 'postgres/data'), { recursive: true });
    await untilLed(scene, other(scene, old));
    old.start('patroni');
  },
};

const leaderFreezes: Blow = {
  victim: 'postgres_leader',
  what: 'Postgres and Patroni of the leader frozen for 60 s, then thawed',
  async strike(scene) {
    const old = await leader(scene);
    await old.freeze('patroni');
    await sleep(FREEZE_MS);
    await untilLed(scene, other(scene, old));
    await old.thaw('patroni');
    // It believes that it leads.
    await scene.witness.watch(old, 10_000);
  },
};

const standbyDies: Blow = {
  victim: 'standby',
  what: 'the standby killed, back after 20 s',
  async strike(scene) {
    const standby = other(scene, await leader(scene));
    await standby.kill('patroni');
    await sleep(20_000);
    if ((await synchronousStandbys(scene.cluster.patroni)) > 0)
      throw new Error('there would be no alert for a standby that is gone');
    standby.start('patroni');
  },
};

/** Without a majority of etcd no Postgres may lead, so quotes have to stop. This time does not count as a pause. */
const twoEtcd: Blow = {
  victim: 'etcd',
  what: 'two of three etcd killed, back after 45 s',
  async strike(scene, load) {
    const lost = [other(scene, await leader(scene)), scene.cluster.machines.c];
    const led = await leader(scene);
    const counts = [load.quoteTimes.excuse(), scene.deliveries.excuse()];
    for (const machine of lost) await machine.kill('etcd');
    await sleep(25_000);
    const acknowledged = load.quotes.length;
    await scene.witness.watch(led, 18_000);
    if (load.quotes.length > acknowledged) throw new Error('quotes were answered although nobody may lead');
    for (const machine of lost) machine.start('etcd');
    for (const count of counts) count();
  },
};

const machineDies: Blow = {
  victim: 'machine',
  what: "the leader's machine: everything on it killed, back after 30 s",
  async strike(scene) {
    const machine = await leader(scene);
    await Promise.all(machine.units.map((unit) => machine.kill(unit)));
    await sleep(30_000);
    for (const unit of machine.units) machine.start(unit);
  },
};

const machineCutOff: Blow = {
  victim: 'machine',
  what: "the leader's machine cut off for 45 s",
  async strike(scene) {
    const machine = await leader(scene);
    pullCable(machine.name);
    await scene.witness.watch(machine, 45_000);
    plugCable(machine.name);
    await scene.witness.watch(machine, 5_000);
  },
};

/** The steps of docs/operations/cluster.md, with the same code under another name. */
const release: Blow = {
  victim: 'release',
  what: 'a release, rolled over the machines',
  deliveriesS: 10,
  async strike({ cluster: { machines } }) {
    const { a, b } = machines;
    const build = 'release-2';
    for (const { srv } of [a, b]) writeFileSync(join(srv, 'app/release.env'), `WORKER_BUILD_ID=${build}\n`);
    const restart = async (machine: Machine, unit: UnitName) => {
      await machine.restart(unit);
      await untilReady(60_000);
    };
    await restart(a, 'api');
    await restart(b, 'api');
    await restart(a, 'worker');
    for (const args of [['check'], ['set-current', build]]) await ops(a, ['deployments', ...args]);
    await restart(b, 'worker');
  },
};

export const SHORT: readonly Blow[] = [
  leaderGone,
  killed('temporal', 'a', 3_000),
  frozen('temporal', 'b', FREEZE_MS),
  killed('worker', 'b', 3_000),
  release,
];

export const LONG: readonly Blow[] = [
  leaderCrashes,
  killed('api', 'a', 3_000),
  killed('worker', 'a', 3_000),
  leaderGone,
  killed('temporal', 'a', 10_000),
  standbyDies,
  frozen('temporal', 'b', FREEZE_MS),
  leaderFreezes,
  frozen('temporal', 'a', FREEZE_MS),
  frozen('api', 'b', 30_000),
  killed('etcd', 'c', 15_000),
  killed('worker', 'b', 10_000),
  killed('proxy', 'a', 10_000),
  twoEtcd,
  frozen('worker', 'a', FREEZE_MS),
  killed('temporal', 'b', 3_000),
  release,
  machineDies,
  killed('api', 'b', 10_000),
  machineCutOff,
];
