import { match, notStrictEqual, ok, strictEqual } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { MACHINE, NAME } from './partner';
import { reckon, unnoticed, type Scene } from './scene';

const shown = (ca: string) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect({ host: MACHINE.ipv4, port: 443, servername: NAME, ca }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.end();
    }).once('error', reject);
  });

export async function certificates(scene: Scene): Promise<void> {
  const { project, outside } = scene;
  await unnoticed(scene, async () => {
    // The proxy's: the file keeps its inode.
    const before = await shown(outside.authority.cert);
    project.write('new.pem', await outside.certificate());
    await project.page('cat new.pem > tls.pem');
    await project.page("docker compose exec -T proxy sh -c 'kill -USR2 1'");
    await sleep(2_000);
    notStrictEqual(await shown(outside.authority.cert), before);
    await project.page('docker compose run --rm certificates');
    await project.page(
      'for each in api-1 api-2 worker-1 worker-2; do docker compose up -d --no-deps --wait --force-recreate "$each"; done',
    );
  });
  await project.page('docker compose restart');
  await project.healthy();
  // A stolen key of Temporal's.
  await project.page('docker compose down');
  await project.page('docker volume rm finance_temporal-{authority,server,client,console}');
  // Nothing is in it yet that a backup needs.
  await project.page('docker volume rm finance_backups');
  await project.page('docker compose up -d');
  await project.healthy();
  await reckon(scene);
}

export async function monitoring({ project }: Scene): Promise<void> {
  const alone = 'docker compose --profile monitoring up -d --no-deps prometheus && sleep 3';
  match(
    await project.run(`${alone} && docker compose --profile monitoring logs prometheus`),
    /see \.env\.example/,
  );
  project.set({ RUNBOOKS_URL: 'https://handbook.example/operations' });
  await project.page('docker compose --profile monitoring up -d --wait');
  const ask = async (path: string) =>
    JSON.parse(await project.run(`machine curl -sg 'http://127.0.0.1:9090/api/v1/${path}'`));
  const wanted = ['172.31.250.2:8404', '172.31.250.2:8443', 'node-exporter:9100'];
  wanted.push(...['api-1', 'api-2', 'worker-1', 'worker-2'].map((name) => `${name}:8081`));
  interface Target {
    readonly labels: { readonly instance: string };
    readonly health: string;
  }
  for (let tries = 0; ; tries += 1) {
    const { data } = await ask('targets?state=active');
    const up = (data.activeTargets as Target[]).filter(({ health }) => health === 'up');
    const seen = up.map(({ labels }) => labels.instance).toSorted();
    if (seen.join() === wanted.toSorted().join()) break;
    ok(tries < 60, `up are only ${seen.join(', ')}`);
    await sleep(1_000);
  }
  const { data } = await ask('query?query=probe_success');
  strictEqual(data.result[0]?.value[1], '1', 'the certificate is not seen');
}
