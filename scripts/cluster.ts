/**
 * `npm run cluster`: the whole cluster of deploy/cluster on this machine, in namespaces of its own, for people to look at and to break
 * (docs/operations/cluster.md). Linux, root. It takes a minute to start; Ctrl-C ends it, and nothing is left behind.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { seedDemo } from '../dev/seed';
import { bringUp, isReady, type Cluster } from './cluster/bring-up';
import { runInside } from './cluster/inside';
import type { Machine } from './cluster/machine';
import { ADDRESSES, MACHINES, plugCable, pullCable, type MachineName } from './cluster/network';
import { readEnvironment, type UnitName } from './cluster/units';

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
  let demo: Awaited<ReturnType<typeof seedDemo>> | undefined;
  const cluster = await bringUp({
    directory,
    say,
    extra: {},
    onSchema: async ({ databaseUrl }) => void (demo = await seedDemo(databaseUrl, undefined)),
  });
  if (demo === undefined) throw new Error('the schema was not announced');
  const { partnerId, apiKeys } = demo;
  const body = JSON.stringify({
    merchant_id: 'M000001',
    partner_id: partnerId,
    loan_amount: '900.00',
    customer_deposit: '100.00',
    merchant_finance_url: 'https://shop.example/finance',
  });
  const quote = async () => {
    for (const name of ['a', 'b'] as const) {
      const headers = ['-H', `Authorization: Bearer ${apiKeys.test}`, '-H', 'Content-Type: application/json'];
      const url = `https://${ADDRESSES[name]}/v1/finance-quote`;
      const way = [
        'curl',
        '-sSk',
        '-m10',
        '-w',
        ' (%{http_code}, %{time_total} s)\n',
        ...headers,
        '-d',
        body,
        url,
      ];
      // From the third machine, which no partner would be.
      say(await cluster.machines.c.run('nobody', way).catch((error: Error) => error.message));
    }
  };
  say('\nThe cluster is up.');
  await status(cluster);
  await quote();
  say(HELP);
  const lines = createInterface({ input: process.stdin });
  const ended = new Promise<void>((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
  lines.on('line', (line) => {
    const words = line.trim().split(/\s+/);
    const work = words[0] === 'quote' ? quote() : obey(cluster, words);
    work.catch((error: Error) => say(error.message));
  });
  await ended;
  return 0;
}

async function status({ patroni }: Cluster): Promise<void> {
  for (const { name, role, state } of await patroni.members()) say(`Postgres ${name}: ${role}, ${state}`);
  for (const name of ['a', 'b'] as const)
    say(`machine ${name} (${ADDRESSES[name]}): ${(await isReady(name)) ? 'ready' : 'not ready'}`);
}

async function obey(
  cluster: Cluster,
  [verb = '', name = '', unit, ...args]: readonly string[],
): Promise<void> {
  if (verb === '') return;
  if (verb === 'status') return status(cluster);
  const machine = MACHINES.includes(name as MachineName) ? cluster.machines[name as MachineName] : undefined;
  if (machine === undefined) return say(HELP);
  if (verb === 'ops') return say(await ops(machine, [unit ?? '--help', ...args]));
  if (verb === 'run') return say(await machine.run('postgres', ['sh', '-c', [unit, ...args].join(' ')]));
  if (verb === 'cut' || verb === 'plug') return (verb === 'cut' ? pullCable : plugCable)(machine.name);
  const units = unit === undefined ? machine.units : machine.units.filter((one) => one === unit);
  if (units.length === 0) return say(`machine ${name} has ${machine.units.join(', ')}`);
  for (const one of units) await act(verb, one);

  async function act(what: string, one: UnitName): Promise<void> {
    if (machine === undefined) return;
    if (what === 'kill') await machine.kill(one);
    else if (what === 'start') machine.start(one);
    else if (what === 'freeze') await machine.freeze(one);
    else if (what === 'thaw') await machine.thaw(one);
    else if (what === 'log') say(machine.log(one).slice(-3_000));
    else say(HELP);
  }
}

/** As the comment in ops.env says. */
const ops = (machine: Machine, args: readonly string[]) =>
  machine.run('quotes', [process.execPath, '/srv/quotes/app/dist/bin/ops.js', ...args], {
    ...readEnvironment(`${machine.srv}/etc/quotes/ops.env`),
    OPS_ACTOR: 'cluster',
  });

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean', short: 'h', default: false } },
});
if (values.help) {
  say(
    `npm run cluster: the cluster of deploy/cluster on this machine (Linux, root). Ctrl-C ends it.\n${HELP}`,
  );
  process.exit(0);
}
const [directory] = positionals;
const work = directory === undefined ? runInside(__filename, []) : run(directory);
work.then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
