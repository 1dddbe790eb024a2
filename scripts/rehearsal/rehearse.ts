import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { startDnsServer } from '../../test/support/dns-server';
import { RECEIVER_NAME, startWebhookReceiver, verifySignatures } from '../../test/support/webhook-receiver';
import { readCompose, type Service } from './compose';
import { lenderIntegration, tryAsLender } from './lender';
import { backUpAndRestore, DATA } from './restore';
import { createStandIn, type Started, type StandIn } from './stand-in';

/** A public address, which leads nowhere but here: production's rules refuse any other. */
const PARTNER_ADDRESS = '93.184.215.14';
const VERSION = 'rehearsal';
const PROXY = 'https://172.31.250.2:8443';
/** What the images say where the compose file says nothing. */
const STOP_SIGNALS: Readonly<Record<string, NodeJS.Signals>> = { postgres: 'SIGINT' };

interface Rehearsal {
  readonly root: string;
  readonly directory: string;
  readonly postgresBin: string;
}

/** Runs everything, and says what it sees. @throws at the first thing that is not as it should be. */
export async function rehearse({ root, directory, postgresBin }: Rehearsal): Promise<void> {
  const day = 86_400_000;
  const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
  const authority = await createAuthority('Rehearsal', validity);
  const tls = await issueCertificate(
    authority,
    ['172.31.250.2', '172.31.251.2'].map((value) => ({ type: 'ip' as const, value })),
    validity,
  );
  const pem = join(directory, 'tls.pem');
  // Readable by the proxy's user, as .env.example says.
  writeFileSync(pem, tls.cert + tls.key, { mode: 0o644 });
  const password = () => randomBytes(24).toString('hex');
  const services = readCompose(root, {
    VERSION,
    POSTGRES_PASSWORD: password(),
    QUOTES_DB_PASSWORD: password(),
    QUOTES_API_DB_PASSWORD: password(),
    QUOTES_WORKER_DB_PASSWORD: password(),
    QUOTES_OPS_DB_PASSWORD: password(),
    TEMPORAL_DB_PASSWORD: password(),
    REDIS_PASSWORD: password(),
    OPS_ACTOR: 'rehearsal',
    WEBHOOK_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    TLS_PEM_FILE: pem,
  });
  const lender = lenderIntegration(services);
  const engine = createStandIn([...services, lender], {
    directory,
    app: join(directory, 'app'),
    temporal: join(directory, 'temporal'),
    postgresBin,
    nameServer: PARTNER_ADDRESS,
    outside: PARTNER_ADDRESS,
  });
  const names = await startDnsServer((_name, type) => (type === 'A' ? [PARTNER_ADDRESS] : []), {
    host: PARTNER_ADDRESS,
    port: 53,
  });
  const receiver = await startWebhookReceiver(() => 200, { host: PARTNER_ADDRESS, port: 443 });
  const ca = join(directory, 'receiver-ca.pem');
  writeFileSync(ca, receiver.ca);

  const running: Started[] = [];
  try {
    for (const service of services.filter(({ profiles }) => profiles.length === 0)) {
      // No program of it here.
      if (service.name === 'temporal-ui') continue;
      if (service.name === 'backups') {
        makeFolders(service, directory);
        continue;
      }
      if (service.name === 'postgres') await initialise(service, { directory, postgresBin });
      const isJob = services.some(({ needs }) => needs[service.name] === 'service_completed_successfully');
      const started = start(engine, service, ca);
      if (isJob) await completed(started, directory);
      else running.push(started);
      if (service.test !== undefined) await untilHealthy(engine, started, directory);
      if (service.name === 'postgres') initialiseRoles(started, service);
    }
    const ops = services.find(({ name }) => name === 'ops');
    if (ops === undefined) throw new Error('there is no service ops');
    const operate = operator(engine, ops);
    await tryOut({ operate, authority: authority.cert, received: receiver.received });
    await tryAsLender({ engine, lender, services, operate, authority: authority.cert, directory });
    for (const one of running) expectSeparated(one, directory);
    const [postgres, migrate] = ['postgres', 'migrate'].map((name) =>
      services.find((service) => service.name === name),
    );
    const server = running.find((one) => one.service === postgres);
    if (postgres === undefined || migrate === undefined || server === undefined)
      throw new Error('there is no Postgres');
    const restored = await backUpAndRestore(server, {
      engine,
      postgres,
      migrate,
      operate,
      postgresBin,
      start: (service) => start(engine, service, ca),
      untilHealthy: (started) => untilHealthy(engine, started, directory),
      completed: (job) => completed(job, directory),
      stop: async () => {
        await stopAll(running);
        running.length = 0;
      },
    });
    running.push(restored);
    await stopAll(running);
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    await receiver.close();
    await names.close();
  }
}

function start(engine: StandIn, service: Service, ca: string): Started {
  console.log(`${service.name}: ${service.argv.join(' ')}`);
  if (service.name === 'postgres')
    return engine.start(service, {
      argv: [...service.argv, '-D', DATA],
    });
  // The one setting that the compose file lacks: the partner's certificate is of an authority of ours.
  if (service.name.startsWith('worker'))
    return engine.start(service, {
      environment: { WEBHOOK_CA_FILE: '/run/receiver-ca.pem' },
      mounts: [{ from: ca, to: '/run/receiver-ca.pem' }],
    });
  return engine.start(service);
}

/** Its command, which needs rights over files that nothing else has here. */
function makeFolders(service: Service, directory: string): void {
  const [shell = '', flags = '', script = ''] = service.argv;
  const volume = join(directory, 'volumes', 'backups');
  execFileSync(shell, [flags, script.replaceAll('/backups', volume)], { stdio: 'inherit' });
}

/** What the entry point of Postgres' image does with an empty volume. */
async function initialise(
  service: Service,
  { directory, postgresBin }: Omit<Rehearsal, 'root'>,
): Promise<void> {
  const volume = join(directory, 'volumes', service.name);
  mkdirSync(join(volume, 'data'), { recursive: true });
  writeFileSync(join(volume, 'password'), service.environment['POSTGRES_PASSWORD'] ?? '');
  const script = `chown -R postgres ${volume} && chmod 700 ${volume}/data && cd / &&
    setpriv --reuid postgres --regid postgres --clear-groups ${postgresBin}/initdb -D ${volume}/data -U postgres \
      --auth-local=trust --auth-host=scram-sha-256 --pwfile=${volume}/password >/dev/null &&
    echo "host all all all scram-sha-256" >> ${volume}/data/pg_hba.conf &&
    echo "listen_addresses = '*'" >> ${volume}/data/postgresql.conf`;
  execFileSync('sh', ['-euc', script], { stdio: ['ignore', 'inherit', 'inherit'] });
}

function initialiseRoles({ child }: Started, { environment }: Service): void {
  const target = ['--target', String(child.pid), '--mount', '--net', '--root', '--wd', '--'];
  execFileSync('nsenter', [...target, '/docker-entrypoint-initdb.d/init.sh'], {
    env: { PATH: process.env['PATH'], ...environment, PGHOST: '/var/run/postgresql' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

/** Each process says at its start what its database login may do that it does not need. */
function expectSeparated({ service }: Started, directory: string): void {
  const log = readFileSync(join(directory, `${service.name}.log`), 'utf8');
  if (/the database login (is not separated|may not do)/.test(log))
    throw new Error(`the database login of ${service.name} is not that of its role`);
}

async function completed(job: Started, directory: string): Promise<void> {
  const code = await job.ended;
  if (code !== 0) throw new Error(`${job.service.name} ended with ${code}:\n${logOf(job, directory)}`);
  console.log(`  completed`);
}

async function untilHealthy(engine: StandIn, started: Started, directory: string): Promise<void> {
  const deadline = performance.now() + 90_000;
  while (!engine.healthy(started)) {
    if (performance.now() > deadline || started.child.exitCode !== null)
      throw new Error(`${started.service.name} does not become healthy:\n${logOf(started, directory)}`);
    await sleep(500);
  }
  console.log(`  healthy after ${Math.round((performance.now() - started.startedAt) / 100) / 10} s`);
}

const logOf = ({ service }: Started, directory: string) =>
  execFileSync('tail', ['-c', '3000', join(directory, `${service.name}.log`)]).toString();

/** Runs a command of `ops`. */
const operator =
  (engine: StandIn, ops: Service) =>
  async (...args: string[]): Promise<Record<string, string>> => {
    let out = '';
    const argv = [...ops.argv, ...args, '--json'];
    const code = await engine.start(ops, { argv, onOutput: (text) => (out += text) }).ended;
    if (code !== 0) throw new Error(`ops ${args.join(' ')} ended with ${code}`);
    return JSON.parse(out) as Record<string, string>;
  };

async function tryOut(what: {
  operate: ReturnType<typeof operator>;
  authority: string;
  received: Awaited<ReturnType<typeof startWebhookReceiver>>['received'];
}): Promise<void> {
  const { operate, received } = what;
  // Until then workers send nothing.
  await operate('deployments', 'set-current', VERSION);
  const live = ['--partner', 'P100001', '--environment', 'live'];
  await operate('partners', 'create', '--name', 'Example', '--id', 'P100001');
  const { key = '' } = await operate('keys', 'issue', ...live);
  const { secret = '' } = await operate(
    'webhooks',
    'register',
    ...live,
    '--url',
    `https://${RECEIVER_NAME}/hooks`,
  );

  const agent = new Agent({ connect: { ca: what.authority } });
  const post = async (path: string, body: string | null) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await request(`${PROXY}${path}`, {
      method: 'POST',
      dispatcher: agent,
      headers: body === null ? { authorization: headers.authorization } : headers,
      body,
    });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const quote = JSON.stringify({
    merchant_id: 'M000001',
    partner_id: 'P100001',
    loan_amount: '900.00',
    customer_deposit: '100.00',
    merchant_finance_url: 'https://shop.example/finance',
  });
  // A key takes up to a second to be known.
  for (let tries = 0; ; tries += 1) {
    const { status, text } = await post('/v1/finance-quote', quote);
    if (status === 200) {
      console.log(`quote through the proxy: ${status}, ${text.slice(0, 120)}…`);
      break;
    }
    if (tries > 50) throw new Error(`quote: ${status} ${text}`);
    await sleep(100);
  }
  const test = await post('/v1/notifications/test', null);
  console.log(`test webhook through the proxy: ${test.status}, ${test.text}`);
  const [webhook] = received;
  if (test.status !== 200 || webhook === undefined) throw new Error('the test webhook did not arrive');
  verifySignatures(webhook, secret);
  console.log('  both forms of its signature hold');
  await agent.close();
}

/** In reverse, with the signals and within the times of the compose file. */
async function stopAll(running: readonly Started[]): Promise<void> {
  for (const { child, service, ended } of running.toReversed()) {
    const signal = service.stopSignal ?? STOP_SIGNALS[service.name] ?? 'SIGTERM';
    const before = performance.now();
    child.kill(signal);
    const late = sleep(service.graceMs, 'not within its grace', { ref: false });
    const code = await Promise.race([ended, late]);
    const ms = Math.round(performance.now() - before);
    console.log(`${service.name}: ${signal}, ended with ${code} after ${ms} ms of ${service.graceMs}`);
    if (code !== 0) throw new Error(`${service.name} did not stop in order`);
  }
}
