import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { underTraffic, unnoticed } from '../containers/scene';
import type { Cluster, Scene } from './cluster';
import { INSTALL } from './install';

const FIRST = ':0.1.0';
const SECOND = ':0.1.1';
const apart = (nodes: readonly string[]) => new Set(nodes).size === nodes.length;

const upgrade = (project: Cluster, tag: string, more = '') =>
  project.page(INSTALL, { '--wait': `--set image.tag=${tag}${more} --wait` });

export async function releases(scene: Scene): Promise<void> {
  const { project, figures } = scene;
  const spread: boolean[] = [];
  const back = () => project.page('helm rollback quotes --wait');
  for (const [release, image] of [
    [() => upgrade(project, '0.1.1'), SECOND],
    [back, FIRST],
  ] as const) {
    await unnoticed(scene, async () => void (await release()));
    const { api, worker } = await project.settled(image);
    spread.push(apart(api), apart(worker));
  }
  deepStrictEqual(spread, [true, true, true, true]);
  figures.spread_after_release = true;
}

/** Where one node alone has room a release stands there; once there is more, it is spread by the command of the page. */
export async function crowded(scene: Scene): Promise<void> {
  const { project } = scene;
  await unnoticed(scene, async () => {
    await project.run('kubectl cordon node2 node3');
    const restart = () =>
      project.page('kubectl rollout restart deployment/quotes-api deployment/quotes-worker');
    await restart();
    const done = () =>
      project.run(
        'kubectl rollout status deployment/quotes-api && kubectl rollout status deployment/quotes-worker',
      );
    await done();
    deepStrictEqual(await project.settled(), { api: ['node1', 'node1'], worker: ['node1', 'node1'] });
    await project.run('kubectl uncordon node2 node3');
    await restart();
    await done();
    const { api, worker } = await project.settled();
    ok(apart(api) && apart(worker), JSON.stringify({ api, worker }));
  });
}

/** Each node in turn, as somebody does who updates them. */
export async function drains(scene: Scene): Promise<void> {
  const { project, figures, outside } = scene;
  const before = outside.receiver.received.length;
  // Slow enough for requests to be under way when their worker is told to stop.
  outside.answerAfter(1_000);
  await unnoticed(scene, async () => {
    for (const node of ['node1', 'node2', 'node3']) {
      await project.run(`kubectl drain ${node} --ignore-daemonsets --delete-emptydir-data --timeout=180s`);
      const { api, worker } = await project.settled();
      ok(![...api, ...worker].includes(node));
      await project.run(`kubectl uncordon ${node}`);
    }
  });
  outside.answerAfter(0);
  const ids = outside.receiver.received.slice(before).map(({ eventId }) => eventId);
  ok(ids.length > 0);
  deepStrictEqual(
    ids.filter((id, nth) => ids.indexOf(id) !== nth),
    [],
    'a notification arrived twice',
  );
  figures.drained = true;
}

/** `kill -9` of each pod's process; its container starts again. */
export async function kills(scene: Scene): Promise<void> {
  const { project } = scene;
  await underTraffic(scene, async () => {
    for (const component of ['api', 'worker'] as const)
      for (const pod of await project.pods(component)) {
        project.kill(pod);
        const restarted = () =>
          project.run(
            `kubectl get pod ${pod.name} -o jsonpath='{.status.containerStatuses[0].restartCount}'`,
          );
        while ((await restarted()) === '0') await sleep(500);
        await project.settled();
      }
  });
}

/** Releases that cannot work: the old pods serve on, and the commands of the page show why. */
export async function mistakes(scene: Scene): Promise<void> {
  const { project } = scene;
  const pods = async () =>
    (await project.pods('api'))
      .filter(({ ready }) => ready)
      .map(({ uid }) => uid)
      .toSorted();
  const before = await pods();
  const secret = (name: string, change = '') =>
    project.run(
      `sed '${change}' ${name}.env >changed.env && kubectl create secret generic quotes-${name} --from-env-file=changed.env --dry-run=client -o yaml | kubectl apply -f -`,
    );
  const WRONG = 's/:[0-9a-f]*@quotes-rw/:wrong@quotes-rw/';
  const fails = async (tag: string, limit: string) => {
    const line = project.words(INSTALL, {
      '--wait': `--set image.tag=${tag} --set migrate.deadlineSeconds=60 --wait`,
      '10m': limit,
    });
    const { code, out } = await project.try(line);
    notStrictEqual(code, 0, out);
    deepStrictEqual(await pods(), before);
    return out;
  };
  await unnoticed(scene, async () => {
    // A wrong password of the API.
    await secret('api', WRONG);
    match(await fails('0.1.1', '60s'), /timed out|deadline/);
    const POD = /^(quotes-api\S+) +0\/1/m.exec(await project.page('kubectl get pods'))?.[1];
    ok(POD);
    match(await project.page('kubectl describe pod POD', { POD }), /probe failed|BackOff/);
    match(await project.page('kubectl logs POD', { POD }), /password authentication failed/);
    await secret('api');
    await project.page('helm rollback quotes --wait');
    await project.settled(FIRST);
    // An image that no registry has.
    match(await fails('0.9.9', '90s'), /quotes-migrate/);
    match(await project.run('kubectl describe job quotes-migrate'), /0\.9\.9/);
    // A migration that fails.
    await secret('migrate', WRONG);
    match(await fails('0.1.1', '90s'), /quotes-migrate/);
    match(await project.page('kubectl logs job/quotes-migrate'), /password authentication failed/);
    await secret('migrate');
  });
  await unnoticed(scene, async () => void (await upgrade(project, '0.1.1')));
  const { api, worker } = await project.settled(SECOND);
  ok(apart(api) && apart(worker));
}

/** A node whose processes freeze, and which is gone half a minute later. */
export async function nodeLost(scene: Scene): Promise<void> {
  const { project, figures } = scene;
  const { api, worker } = await project.settled();
  const node = api.find((one) => worker.includes(one)) ?? api[0] ?? '';
  let frozenAt = 0;
  const lost = await underTraffic(scene, async () => {
    frozenAt = Date.now();
    project.freeze(node);
    await sleep(30_000);
    project.end(node);
    const there = async () =>
      (await Promise.all([project.pods('api'), project.pods('worker')]))
        .flat()
        .some((one) => one.node === node);
    while (await there()) await sleep(500);
    await project.settled();
    await project.page('kubectl delete node NODE', { NODE: node });
  });
  const last = lost.map((one) => Date.parse(one.slice(0, 24))).reduce((a, b) => Math.max(a, b), frozenAt);
  figures.node_lost_s = Math.round((last - frozenAt) / 1_000);
  // As the page has it: Kubernetes notices after 50 s; a call that was begun before may take 8 s to fail.
  ok(
    figures.node_lost_s < 65,
    `calls failed until ${figures.node_lost_s} s after the loss: ${lost.length} of them`,
  );
}

export async function uninstalls({ project }: Scene): Promise<void> {
  await project.page('kubectl scale deployment/quotes-ops --replicas=0');
  await project.page('helm uninstall quotes');
  const kinds =
    'all,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers,ingresses,configmaps,secrets';
  for (let tries = 0; ; tries += 1) {
    const left = await project.run(
      `kubectl get ${kinds} -l app.kubernetes.io/instance=quotes -o name --field-selector metadata.namespace=quotes`,
    );
    if (left === '') break;
    if (tries > 120) strictEqual(left, '');
    await sleep(1_000);
  }
}
