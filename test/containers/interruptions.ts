import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { SERVER_VERSION } from '../../dev/temporal-postgres/executables';
import { underTraffic, unnoticed, type Scene } from './scene';

export async function rollingRestart(scene: Scene): Promise<void> {
  const { project } = scene;
  await unnoticed(scene, async () => {
    project.set({ VERSION: 'two' });
    await project.page('docker compose build && docker compose run --rm migrate');
    for (const release of ['two', 'one']) {
      project.set({ VERSION: release });
      await project.page(
        'for each in api-1 api-2 worker-1; do docker compose up -d --no-deps --wait "$each"; done',
      );
      await project.page('docker compose run --rm ops deployments check');
      await project.page('docker compose run --rm ops deployments set-current RELEASE', { RELEASE: release });
      await project.page('docker compose up -d --no-deps --wait worker-2');
    }
    await project.run(
      `cd deploy/proxy && sed '$ a # of this release' haproxy.cfg >new.cfg && mv new.cfg haproxy.cfg`,
    );
    await project.page("docker compose exec -T proxy sh -c 'kill -USR2 1'");
    await project.run(
      "docker compose exec -T proxy grep '# of this release' /usr/local/etc/haproxy/haproxy.cfg",
    );
  });
  // "After a release"
  await project.page('docker compose ps');
  const failed = "docker compose logs --since 10m api-1 api-2 | grep -c 'request failed'";
  strictEqual(await project.page(failed, { [failed]: `${failed} || true` }), '0');
}

/** "Upgrading Temporal": the same version under another name. */
export async function temporalUpgrade(scene: Scene): Promise<void> {
  const { project } = scene;
  await unnoticed(scene, async () => {
    await project.run(`for image in server admin-tools; do docker tag temporalio/$image:${SERVER_VERSION} temporalio/$image:next; done
      sed -i 's/${SERVER_VERSION}/next/' docker-compose.yml`);
    await project.page('docker compose run --rm temporal-schema');
    await project.page('docker compose up -d --no-deps --wait temporal');
  });
}

/** "Temporal has lost its data", while events come and others wait for their second attempt. */
export async function temporalLost(scene: Scene): Promise<void> {
  const { project, outside } = scene;
  const startedAgain = () => project.sql('select event_id from notifications where generation > 1');
  const builds = async () =>
    (await project.try('docker compose run --rm -T ops deployments show --json')).out;
  const before = await startedAgain();
  await unnoticed(scene, async () => {
    outside.answerWith(503);
    await sleep(3_000);
    await project.page('docker compose stop worker-1 worker-2 temporal');
    await project.page(
      "docker compose exec postgres psql -U postgres -c 'DROP DATABASE IF EXISTS temporal WITH (FORCE)' -c 'DROP DATABASE IF EXISTS temporal_visibility WITH (FORCE)' -c 'CREATE DATABASE temporal OWNER temporal' -c 'CREATE DATABASE temporal_visibility OWNER temporal' -c 'REVOKE CONNECT ON DATABASE temporal, temporal_visibility FROM PUBLIC'",
    );
    outside.answerWith(200);
    await project.page('docker compose up -d --wait');
    for (let tries = 0; !(await builds()).includes('"one"'); tries += 1)
      ok(tries < 40, 'the workers have not announced their build');
    await project.page('docker compose run --rm ops deployments set-current RELEASE', { RELEASE: 'one' });
  });
  ok((await startedAgain()).length > before.length, 'no delivery was under way');
}

/** The first process of each container, killed from the machine: `docker kill` would tell the engine that somebody wants it to end. */
export async function kills(scene: Scene): Promise<void> {
  const { project, figures } = scene;
  await underTraffic(scene, async () => {
    const services = (await project.run("docker compose ps --format '{{.Service}}'")).split('\n');
    for (const service of services) {
      const pid = await project.run(
        `docker inspect --format '{{.State.Pid}}' $(docker compose ps -q ${service})`,
      );
      await project.run(`machine kill -9 ${pid}`);
      await sleep(500);
      await project.healthy();
      figures.killed.push(service);
    }
  });
}

const endings = async ({ project }: Scene) =>
  (await project.run(`docker compose ps --all --format '{{.Service}} {{.State}} {{.ExitCode}}'`))
    .split('\n')
    .filter((line) => !line.endsWith(' exited 0'));

export async function stops(scene: Scene): Promise<void> {
  const { project, figures } = scene;
  await underTraffic(scene, async () => {
    await project.page('docker compose stop');
    // Temporal's page knows no orderly stop.
    deepStrictEqual(await endings(scene), ['temporal-ui exited 2']);
    figures.stopped_cleanly = true;
    await project.page('docker compose up -d');
    await project.healthy();
  });
}

export async function restartOfTheEngine(scene: Scene): Promise<void> {
  const { project } = scene;
  await underTraffic(scene, async () => {
    await project.run('bash "$ENGINE" stop && bash "$ENGINE" start');
    await project.healthy();
    const killed = await project.run(
      "docker inspect --format '{{.Name}} {{.State.OOMKilled}}' $(docker compose ps -q)",
    );
    strictEqual(killed.includes('true'), false);
  });
}
