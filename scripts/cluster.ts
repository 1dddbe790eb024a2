/**
 * `npm run cluster`: the whole cluster of deploy/cluster on this machine, in namespaces of its own, for people to look at and to break
 * (docs/operations/cluster.md). Linux, root. It takes a minute to start; Ctrl-C ends it, and nothing is left behind.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { seedDemo } from '../dev/seed';
import { goodQuote } from '../testbed/values';
import { bringUp, isReady, ops } from './cluster/bring-up';
import { inNamespaces } from './cluster/inside';
import type { Machine } from './cluster/machine';
import { ADDRESSES, plugCable, pullCable, TWINS, type MachineName } from './cluster/network';
import type { UnitName } from './cluster/units';

const say = (text: string) => console.log(text);

const HELP = `
Type one of these (machines a, b, c; units etcd, patroni, proxy, temporal, api, worker, redis; without a unit: all of the machine):
  status                   who leads, what is ready
  quote                    a quote through each proxy
  kill a [unit]            kill -9; it stays away
  start a [unit]
  freeze a [unit]          SIGSTOP
  thaw a [unit]
  cut a, plug a            its network cable
  log a unit               the last lines of what it has printed
  run a command …          any command on that machine, as the user postgres: run a psql -h /srv/quotes/postgres -c 'select …'
  ops a partners list      a command of ops there
`;

async function run(directory: string): Promise<number> {
  const { machines, patroni, prepared } = await bringUp({
    directory,
    say,
    extra: {},
    onSchema: ({ databaseUrl }) => seedDemo(databaseUrl, undefined),
  });
  say('\nThe cluster is up.');
  await status();
  await quote();
  say(HELP);
  createInterface({ input: process.stdin }).on('line', (line) => {
    obey(line.trim().split(/\s+/)).catch((error: Error) => say(error.message));
  });
  await new Promise<void>((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
  return 0;

  async function status(): Promise<void> {
    for (const { name, role, state } of await patroni.members()) say(`Postgres ${name}: ${role}, ${state}`);
    for (const name of TWINS)
      say(`machine ${name} (${ADDRESSES[name]}): ${(await isReady(name)) ? 'ready' : 'not ready'}`);
  }

  async function quote(): Promise<void> {
    const { partnerId, apiKeys } = prepared;
    const body = JSON.stringify({ ...goodQuote, partner_id: partnerId });
    const headers = ['-H', `Authorization: Bearer ${apiKeys.test}`, '-H', 'Content-Type: application/json'];
    const curl = ['curl', '-sSk', '-m10', '-w', ' (%{http_code}, %{time_total} s)\n', ...headers, '-d', body];
    // From the third machine, which no partner would be.
    for (const name of TWINS)
      await machines.c
        .run('nobody', [...curl, `https://${ADDRESSES[name]}/v1/finance-quote`])
        .then(say, (error: Error) => say(error.message));
  }

  async function obey([verb = '', name = '', ...args]: readonly string[]): Promise<void> {
    if (verb === '') return;
    if (verb === 'status') return status();
    if (verb === 'quote') return quote();
    const machine: Machine | undefined = machines[name as MachineName];
    if (machine === undefined) return say(HELP);
    const units = args[0] === undefined ? machine.units : machine.units.filter((one) => one === args[0]);
    const each = async (act: (unit: UnitName) => unknown) => {
      if (units.length === 0) say(`machine ${name} has ${machine.units.join(', ')}`);
      for (const one of units) await act(one);
    };
    const verbs: Readonly<Record<string, () => unknown>> = {
      kill: () => each((unit) => machine.kill(unit)),
      start: () => each((unit) => machine.start(unit)),
      freeze: () => each((unit) => machine.freeze(unit)),
      thaw: () => each((unit) => machine.thaw(unit)),
      log: () => each((unit) => say(machine.log(unit).slice(-3_000))),
      cut: () => pullCable(machine.name),
      plug: () => plugCable(machine.name),
      run: async () => say(await machine.run('postgres', ['sh', '-c', args.join(' ')])),
      ops: async () => say(await ops(machine, args.length > 0 ? args : ['--help'])),
    };
    await (verbs[verb] ?? (() => say(HELP)))();
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean', short: 'h', default: false } },
});
if (values.help)
  say(
    `npm run cluster: the cluster of deploy/cluster on this machine (Linux, root). Ctrl-C ends it.\n${HELP}`,
  );
else inNamespaces(positionals[0], run);
