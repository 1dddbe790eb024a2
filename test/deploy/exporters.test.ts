import { once } from 'node:events';
import { createServer } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileNeeds } from '../support/needs';
import { createTestTls } from '../../testbed/tls';
import { root } from '../docs/tree';
import { samplesOf, type Served } from './metrics-scene';
import { openPrograms, type Programs } from './prometheus';
import { readExpression, readRules } from './rules';

fileNeeds('Prometheus');

/** The exporters of the compose file, as the system's packages bring them: what alerts ask of them is there. */
let programs: Programs;
beforeAll(async () => void (programs = await openPrograms()));
afterAll(() => programs.close());

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
  // Where it runs in a container everything may be an overlay.
  const url = await programs.startNodeExporter(
    '--collector.filesystem.fs-types-exclude=^(proc|sysfs|cgroup.*)$',
  );
  const page = await (await fetch(`${url}/metrics`)).text();
  expectServed(samplesOf(page), /^(?:node_|pfqs_backup_)/, 5);
});

test('blackbox_exporter, with our configuration, says when the certificate of a TLS listener ends', async () => {
  const { cert, key } = await createTestTls();
  const server = createServer({ cert, key });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  programs.closers.push(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = await programs.start(
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
});
