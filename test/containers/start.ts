import { deepStrictEqual, match, ok, strictEqual } from 'node:assert';
import { randomBytes } from 'node:crypto';
import { MACHINE, NAME, PARTNER } from './partner';
import { fileOfPage } from '../support/handbook';
import { RECEIVER_NAME } from '../support/webhook-receiver';
import { issueKeys, writeShop, type Scene } from './scene';

/**
 * What the test adds to the file: the partner's name server and authority, both of them not public; the lenders' port for another machine,
 * and IPv6, as the page has them; more calls a minute than a partner has; more time for Postgres, as the machine may be busy; and no Grafana,
 * of which there is no image.
 */
const OVERRIDE = `
services:
  worker-1: &worker
    dns: [${PARTNER.ipv4}]
    environment: { WEBHOOK_CA_FILE: /run/partner-ca.pem }
    volumes: ['./partner-ca.pem:/run/partner-ca.pem:ro']
  worker-2: *worker
  ops: { dns: [${PARTNER.ipv4}] }
  api-1: &api { environment: { RATE_LIMIT_PER_MINUTE: 100000, DATABASE_TIMEOUT_MS: 20000 } }
  api-2: *api
  grafana: { profiles: !override [absent] }
`;

export async function installs({ project, outside, figures }: Scene): Promise<void> {
  await project.page('cp .env.example .env && chmod 600 .env');
  match((await project.try('docker compose config')).out, /see \.env\.example/);
  project.write('tls.pem', await outside.certificate());
  project.write('lender-ca.pem', outside.lenders.cert);
  project.write('partner-ca.pem', outside.receiver.ca);
  project.write('docker-compose.override.yml', OVERRIDE);
  project.write('ipv6.yml', fileOfPage('production', 'fd31:252'));
  project.environment['COMPOSE_FILE'] = 'docker-compose.yml:docker-compose.override.yml:ipv6.yml';
  const logins = 'POSTGRES QUOTES_DB QUOTES_API_DB QUOTES_WORKER_DB QUOTES_OPS_DB TEMPORAL_DB REDIS'.split(
    ' ',
  );
  const password = () => randomBytes(24).toString('hex');
  project.set({
    VERSION: 'one',
    ...Object.fromEntries(logins.map((name) => [`${name}_PASSWORD`, password()])),
    WEBHOOK_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    TLS_PEM_FILE: './tls.pem',
    PUBLIC_URL: `https://${NAME}`,
  });
  await project.page('docker compose build');
  const size = await project.run(
    "docker image inspect --format '{{.Size}}' partner-finance-quote-service:one",
  );
  figures.image_mb = Math.round(Number(size) / 1e6);
  const startedAt = Date.now();
  await project.page('docker compose up -d --wait');
  figures.ready_s = Math.round((Date.now() - startedAt) / 1_000);
  // Half a minute on two cores of its own; a shared machine may be busy.
  ok(figures.ready_s < 120, `ready after ${figures.ready_s} s`);
  await project.run(
    'docker compose exec -T postgres psql -U postgres -d quotes -v ON_ERROR_STOP=1 <test/model/tools/keep-changes.sql',
  );
  await project.page('export OPS_ACTOR=jane.doe');
  project.environment['OPS_ACTOR'] = 'jane.doe';
  await project.page('docker compose run --rm ops deployments set-current RELEASE', { RELEASE: 'one' });
  await project.page("docker compose run --rm ops partners create --name 'Example Ltd'");
}

export async function firstDay(scene: Scene): Promise<void> {
  const { project, outside, answered } = scene;
  writeShop(project);
  await project.page('docker compose run --rm -T ops merchants import - --dry-run < merchants.json');
  await project.run('docker compose run --rm -T ops merchants import - < merchants.json');
  await project.page('docker compose run --rm -T ops products import - --csv < products.csv');
  const { key, serviceKey } = (scene.credentials = await issueKeys(project));
  const { secret = '' } = await project.ops(
    `webhooks create --partner P100001 --environment live --url https://${RECEIVER_NAME}/hooks`,
  );
  outside.trust(secret);

  const quoted = await outside.quote(key, MACHINE.ipv4);
  const byIpv6 = await outside.quote(key, `[${MACHINE.ipv6}]`);
  for (const { status, body } of [quoted, byIpv6]) {
    strictEqual(status, 200, JSON.stringify(body));
    answered.push(body.data.service_quote_id);
  }
  // Who asked, in the proxy's log, by which the limits by source address count.
  const log = await project.run('docker compose logs --no-log-prefix proxy');
  for (const address of Object.values(PARTNER))
    ok(log.includes(`"client":"${address}"`), `${address} is not in the log`);

  const tested = await outside.test(key);
  deepStrictEqual([tested.status, outside.arrived.size], [200, 1], JSON.stringify(tested.body));

  // An integration that joined the network of lenders, as the page has it; then one on another machine, with certificates demanded.
  const body = {
    lender: 'lender_a',
    lender_reference: 'JOINED01',
    finance_link: quoted.body.data.products[0].merchant_finance_url,
  };
  const program = `fetch('https://${NAME}:8444/internal/v1/credit-applications', { method: 'POST', body: process.argv[1],
    headers: { authorization: 'Bearer ${serviceKey}', 'content-type': 'application/json' } }).then(async (answer) => console.log(answer.status, await answer.text()))`;
  project.write('integration.js', program);
  project.write('authority.pem', outside.authority.cert);
  project.write('order.json', JSON.stringify(body));
  const opened = await project.run(
    `docker run --rm --network finance_lenders --add-host ${NAME}:172.31.251.2 -e NODE_EXTRA_CA_CERTS=/authority.pem -v "$PWD/authority.pem:/authority.pem:ro" \
      node:24-bookworm-slim node -e "$(cat integration.js)" "$(cat order.json)"`,
  );
  match(opened, /^20[01] /);
  project.set({ LENDER_CA_FILE: './lender-ca.pem' });
  project.write(
    'docker-compose.override.yml',
    `${OVERRIDE}  proxy: { ports: ['${MACHINE.private}:8444:8444'] }\n`,
  );
  await project.page('docker compose up -d proxy');
  await project.healthy();
  const path = '/internal/v1/credit-applications';
  const another = await outside.lenderCalls(serviceKey, path, body);
  ok(another.status === 200 || another.status === 201, JSON.stringify(another));
  await outside.strangerCalls(serviceKey, path, body).then(
    () => {
      throw new Error('a lender without a certificate was let in');
    },
    () => undefined,
  );
}
