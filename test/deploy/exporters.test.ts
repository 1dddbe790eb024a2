import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { until } from '../support/delivery';
import { freePort } from '../../dev/ports';
import { fileNeeds, onPath } from '../support/needs';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';
import { createTestTls } from '../support/tls';
import { startWatchdog } from '../support/watchdog';
import { root } from '../docs/tree';
import { samplesOf, type Served } from './metrics-scene';
import { readExpression, readRules } from './rules';

fileNeeds('Prometheus');

/** The exporters of the compose file, as the system's packages bring them: what alerts ask of them is there. */
let directory: string;
let dismissWatchdog: () => void;
const closers: (() => Promise<unknown> | void)[] = [];
beforeAll(async () => {
  directory = await temporaryDirectory('exporters');
  dismissWatchdog = startWatchdog(directory);
});
afterAll(async () => {
  for (const close of closers.toReversed()) await close();
  dismissWatchdog();
  await removeDirectory(directory);
});

async function start(program: string, ...args: string[]): Promise<string> {
  const url = `127.0.0.1:${await freePort()}`;
  const child = spawn(onPath(program) ?? program, [`--web.listen-address=${url}`, ...args], {
    stdio: 'ignore',
  });
  closers.push(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const answers = () =>
    fetch(`http://${url}/`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(answers, `${program} answers`, 60_000);
  return `http://${url}`;
}

function expectServed(served: Served, prefix: RegExp, atLeast: number): void {
  const asked = readRules()
    .flatMap(({ expr }) => readExpression(expr).metrics)
    .filter(({ name }) => prefix.test(name));
  expect(asked.length).toBeGreaterThanOrEqual(atLeast);
  for (const { name, labels } of asked) {
    expect([...served.keys()]).toContain(name);
    expect([...(served.get(name) ?? [])]).toEqual(expect.arrayContaining([...labels]));
  }
}

test('node_exporter serves the disks, and the time that the backup wrote', async () => {
  const texts = join(directory, 'metrics');
  await mkdir(texts);
  await writeFile(join(texts, 'backup.prom'), 'pfqs_backup_completed_timestamp_seconds 1795000000\n');
  // Where it runs in a container everything may be an overlay.
  const url = await start(
    'prometheus-node-exporter',
    '--collector.disable-defaults',
    '--collector.filesystem',
    '--collector.filesystem.fs-types-exclude=^(proc|sysfs|cgroup.*)$',
    '--collector.textfile',
    `--collector.textfile.directory=${texts}`,
  );
  const page = await (await fetch(`${url}/metrics`)).text();
  expectServed(samplesOf(page), /^(?:node_|pfqs_backup_)/, 5);
}, 90_000);

test('blackbox_exporter, with our configuration, says when the certificate of a TLS listener ends', async () => {
  const { cert, key } = await createTestTls();
  const server = createServer({ cert, key });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = await start(
    'prometheus-blackbox-exporter',
    `--config.file=${join(root, 'deploy/prometheus/blackbox.yml')}`,
    `--history.limit=1`,
  );
  const page = await (await fetch(`${url}/probe?module=tls&target=127.0.0.1:${port}`)).text();
  expectServed(samplesOf(page), /^probe_/, 1);
  const [, ends = ''] = /^probe_ssl_earliest_cert_expiry (\S+)$/m.exec(page) ?? [];
  // It was issued for a day.
  expect(Number(ends) * 1_000).toBeGreaterThan(Date.now());
  expect(Number(ends) * 1_000).toBeLessThan(Date.now() + 2 * 86_400_000);
}, 90_000);
