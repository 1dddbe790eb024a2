import { deepStrictEqual, match, ok, strictEqual } from 'node:assert';
import { randomBytes } from 'node:crypto';
import { parse, stringify } from 'yaml';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { MACHINE } from '../containers/partner';
import { issueKeys, writeShop } from '../containers/scene';
import { fileOfPage } from '../support/handbook';
import { VALID } from '../../testbed/tls';
import { surroundings } from './surroundings';
import type { Scene } from './cluster';

export const INSTALL =
  'helm upgrade --install quotes deploy/helm --namespace quotes --values quotes.yaml --wait --timeout 10m';
const password = () => randomBytes(24).toString('hex');

/** What the page asks its reader to bring: stores, files and values. */
async function brought({ project, outside }: Scene): Promise<void> {
  const logins = 'POSTGRES QUOTES_DB QUOTES_API_DB QUOTES_WORKER_DB QUOTES_OPS_DB TEMPORAL_DB'.split(' ');
  const passwords = Object.fromEntries(logins.map((name) => [`${name}_PASSWORD`, password()]));
  const redisPassword = password();
  const stores = await createAuthority('Authority of stores', VALID);
  const temporals = await createAuthority('Authority of Temporal', VALID);
  const issued = async (authority: typeof stores, names: readonly string[]) => {
    const both = await issueCertificate(
      authority,
      names.map((value) => ({ type: 'dns', value })),
      VALID,
      ['serverAuth', 'clientAuth'],
    );
    return { 'ca.pem': authority.cert, 'cert.pem': both.cert, 'key.pem': both.key };
  };
  const pem = await outside.certificate();
  project.write(
    'surroundings.yaml',
    surroundings({
      passwords,
      redisPassword,
      secrets: {
        'quotes/postgres-tls': await issued(stores, ['quotes-rw']),
        'quotes/redis-tls': await issued(stores, ['redis']),
        'temporal/temporal-tls': await issued(temporals, ['temporal', 'temporal-frontend.temporal']),
        'ingress-nginx/tls': { 'tls.pem': pem },
        'gateway/tls': { 'tls.pem': pem },
      },
    }),
  );
  const database = (login: string, name: string) =>
    `DATABASE_URL=postgres://${login}:${passwords[`${name}_DB_PASSWORD`]}@quotes-rw:5432/quotes?sslmode=verify-full&target_session_attrs=read-write&sslrootcert=/run/stores/ca.pem\n`;
  const keys = `WEBHOOK_KEYS=k1:${randomBytes(32).toString('base64')}\n`;
  project.write('migrate.env', database('quotes', 'QUOTES'));
  project.write(
    'api.env',
    `${database('quotes_api', 'QUOTES_API')}REDIS_URL=rediss://:${redisPassword}@redis:6379\n`,
  );
  project.write('worker.env', database('quotes_worker', 'QUOTES_WORKER') + keys);
  project.write('ops.env', database('quotes_ops', 'QUOTES_OPS') + keys);
  const client = await issued(temporals, ['client']);
  project.write('ca.crt', client['ca.pem']);
  project.write('tls.crt', client['cert.pem']);
  project.write('tls.key', client['key.pem']);
  project.write('stores.pem', stores.cert);
  project.write('partners.pem', outside.receiver.ca);
  project.write('stores.yaml', fileOfPage('kubernetes', '# stores.yaml'));
  // The partner's authority is a private one; a partner has fewer calls a minute; the machine may be busy.
  const { authorities, api, ...values } = parse(fileOfPage('kubernetes', '# quotes.yaml'));
  project.write(
    'quotes.yaml',
    stringify({
      ...values,
      // Others come in a step of their own.
      api: {
        ...api,
        autoscaling: { min: 2, max: 2 },
        env: { RATE_LIMIT_PER_MINUTE: 100_000, DATABASE_TIMEOUT_MS: 20_000 },
      },
      authorities: { ...authorities, partners: { configMapName: 'quotes-partners' } },
    }),
  );
}

/** From an empty cluster, by the commands of the page. */
export async function installs(scene: Scene): Promise<void> {
  const { project, figures, outside } = scene;
  await brought(scene);
  await project.page('kubectl create namespace quotes');
  await project.page('kubectl label namespace quotes pod-security.kubernetes.io/enforce=restricted');
  await project.page('kubectl config set-context --current --namespace=quotes');
  // A namespace takes pods once its service account has been made.
  await project.run('until kubectl apply -f surroundings.yaml; do sleep 1; done');
  await project.run('kubectl wait --for=condition=Ready pod --all --all-namespaces --timeout=300s');
  await project.page(
    'for each in migrate api worker ops; do kubectl create secret generic quotes-$each --from-env-file=$each.env; done',
  );
  await project.page(
    'kubectl create secret generic quotes-temporal --from-file=ca.crt --from-file=tls.crt --from-file=tls.key',
  );
  await project.page('kubectl create configmap quotes-stores --from-file=ca.crt=stores.pem');
  await project.run('kubectl create configmap quotes-partners --from-file=ca.crt=partners.pem');
  await project.page('kubectl apply -f stores.yaml');
  // Room on two nodes, as the page asks for.
  await project.run('kubectl cordon node3');
  const startedAt = Date.now();
  match(await project.page(INSTALL), /^STATUS: deployed$/m);
  await project.settled();
  figures.ready_s = Math.round((Date.now() - startedAt) / 1_000);

  project.useShell(
    'ops() { kubectl scale deployment/quotes-ops --replicas=1 >/dev/null && kubectl rollout status deployment/quotes-ops >/dev/null && kubectl exec -i deployment/quotes-ops -- env OPS_ACTOR=jane.doe node dist/bin/ops.js "$@"; }',
  );
  await project.page("ops partners create --name 'Example Ltd'");
  const created = await project.page(
    'ops webhooks create --partner P100001 --environment live --url https://hooks.partner.example/hooks',
  );
  const secret = /whsec_[\w+/=]+/.exec(created)?.[0];
  ok(secret, created);
  outside.trust(secret);
  match(
    await project.page('ops webhooks test --partner P100001 --environment live --wait'),
    /^Delivered test notification/,
  );
  strictEqual(outside.arrived.size, 1);
  match(await project.page('ops status'), /^Well[^]*quotes-api/);
  const logs = async (name: string, line: string) => project.run(`${project.words(line)}\n${name} 30m`);
  match(
    await logs(
      'workers',
      'workers() { kubectl logs --tail=-1 --since="$1" -l app.kubernetes.io/component=worker; }',
    ),
    /worker: settings/,
  );
  match(
    await logs('apis', 'apis() { kubectl logs --tail=-1 --since="$1" -l app.kubernetes.io/component=api; }'),
    /api: settings/,
  );
}

/** A shop with a list of products, and the keys with which it and a lender's integration call. */
export async function serves(scene: Scene): Promise<void> {
  const { project, outside, answered } = scene;
  writeShop(project);
  await project.page('ops merchants import - < merchants.json');
  await project.run('ops products import - --csv < products.csv');
  scene.credentials = await issueKeys(project);
  const quoted = await outside.quote(scene.credentials.key, MACHINE.ipv4);
  strictEqual(quoted.status, 200, JSON.stringify(quoted.body));
  answered.push(quoted.body.data.service_quote_id);
}

/** Whether a pod gets a connection, as a process in it sees it. */
export async function policies({ project, figures }: Scene): Promise<void> {
  const reached = async (from: string, targets: readonly string[]) => {
    const program = `
      for (const one of process.argv.slice(1)) {
        const [host, port] = one.split(':');
        const socket = require('node:net').connect({ host, port, timeout: 3000 });
        for (const end of ['connect', 'timeout', 'error']) socket.once(end, () => { if (end === 'connect') console.log(one); socket.destroy(); });
      }`;
    const out = await project.run(`kubectl exec ${from} -- node -e "${program}" ${targets.join(' ')}`);
    return out
      .split('\n')
      .filter((line) => line !== '')
      .toSorted();
  };
  const targets = {
    postgres: 'quotes-rw:5432',
    redis: 'redis:6379',
    temporal: 'temporal-frontend.temporal:7233',
    public: 'quotes-api:80',
    internal: 'quotes-internal:80',
    partner: 'hooks.partner.example:443',
  };
  const all = Object.values(targets);
  const { postgres, redis, temporal, partner } = targets;
  const from = {
    stranger: 'stranger',
    api: 'deployment/quotes-api',
    worker: 'deployment/quotes-worker',
    ops: 'deployment/quotes-ops',
  };
  const found = await Promise.all(
    Object.entries(from).map(async ([name, pod]) => [name, await reached(pod, all)] as const),
  );
  deepStrictEqual(Object.fromEntries(found), {
    stranger: [partner, temporal].toSorted(),
    api: [postgres, redis].toSorted(),
    worker: [partner, postgres, temporal].toSorted(),
    ops: [postgres, temporal].toSorted(),
  });
  figures.policies_enforced = true;
}
