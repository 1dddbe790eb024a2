import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../testbed/until';
import { underTraffic, unnoticed } from '../containers/scene';
import { PROCESSES, type Cluster, type Scene } from './cluster';
import { INSTALL } from './install';

const FIRST = ':0.1.0';
const SECOND = ':0.1.1';
/** Pods of each kind are on different nodes. */
const spread = (nodes: Record<'api' | 'worker', readonly string[]>) => {
  for (const some of Object.values(nodes))
    strictEqual(new Set(some).size, some.length, JSON.stringify(nodes));
};

const soon = (check: () => boolean | Promise<boolean>, what: string) => until(check, what, 180_000, 500);

const upgrade = (project: Cluster, tag: string, more = '') =>
  project.page(INSTALL, { '--wait': `--set image.tag=${tag}${more} --wait` });

/** During `task` another pod requests so much of node1. */
async function withFiller(project: Cluster, cpu: string, task: () => Promise<void>): Promise<void> {
  const image = 'cluster.local/pause:1';
  const spec = {
    nodeName: 'node1',
    containers: [{ name: 'filler', image, resources: { requests: { cpu } } }],
  };
  await project.run(
    `kubectl run filler --namespace default --image ${image} --overrides '${JSON.stringify({ spec })}'`,
  );
  await project.run('kubectl wait --namespace default --for=condition=Ready pod/filler --timeout=120s');
  await task();
  await project.run('kubectl delete --namespace default pod filler --now');
}

/**
 * Work that moves API pods, and may cost nobody an answer.
 * @throws with what they have logged, where it costs one: a pod that ends takes its log with it
 */
async function moves(scene: Scene, work: () => Promise<void>): Promise<void> {
  const failures = (more = '') =>
    scene.project.try(
      `kubectl logs --selector app.kubernetes.io/component=api ${more} | grep 'request failed'`,
    );
  const before = failures('--follow --since 1s');
  await unnoticed(scene, work).catch(async (error: Error) => {
    const logged = await Promise.all([Promise.race([before, sleep(20_000)]), failures('--since 10m')]);
    throw new Error(`${error.message}\n${logged.map((ran) => ran?.out).join('\n')}`, { cause: error });
  });
}

/**
 * A release by the command of the page, with room on two nodes, as many as it asks for. One has more room: if the spread counts the pods of the release
 * before, all new ones come to stand there.
 */
export async function releases(scene: Scene): Promise<void> {
  const { project } = scene;
  await moves(scene, () =>
    withFiller(project, '300m', async () => {
      await upgrade(project, '0.1.1');
      spread(await project.settled(SECOND));
    }),
  );
}

/**
 * Where one node alone has room, and it is of the size that the page promises, a release stands there, here the way back to the first; where it has
 * less than the page says, the release waits and the old pods serve; once there is more, it is spread.
 */
export async function crowded(scene: Scene): Promise<void> {
  const { project, figures } = scene;
  await moves(scene, async () => {
    await project.run('kubectl cordon node2');
    await project.page('helm rollback quotes --wait');
    deepStrictEqual(await project.settled(FIRST), { api: ['node1', 'node1'], worker: ['node1', 'node1'] });
    // Until the old pods have ended they take up room on their nodes.
    const all = `kubectl get pods --no-headers -l '${PROCESSES}'`;
    await soon(async () => (await project.run(all)).split('\n').length === 4, 'the end of the old pods');
    const requested = await project.run(
      `kubectl get pods -l '${PROCESSES}' -o jsonpath='{.items[*].spec.containers[*].resources.requests}'`,
    );
    deepStrictEqual([...new Set(requested.split(' '))], ['{"cpu":"250m","memory":"384Mi"}']);
    // Of 1.9 CPUs, 1 is ours.
    await withFiller(project, '700m', async () => {
      await project.page('kubectl rollout restart deployment');
      const waiting =
        'kubectl get pods -o jsonpath=\'{.items[*].status.conditions[?(@.reason=="Unschedulable")].message}\'';
      await soon(async () => (await project.run(waiting)).includes('Insufficient cpu'), 'pods without room');
      for (const pods of Object.values(await project.pods()))
        strictEqual(pods.filter(({ ready }) => ready).length, 2);
    });
    await project.run('kubectl uncordon node2 node3');
    await project.run(
      'kubectl rollout status deployment/quotes-api && kubectl rollout status deployment/quotes-worker',
    );
    spread(await project.settled());
  });
  figures.spread_after_release = true;
}

/** Each node in turn, as somebody does who updates them. */
export async function drains(scene: Scene): Promise<void> {
  const { project, figures, outside } = scene;
  const before = outside.receiver.received.length;
  // Slow enough for requests to be under way when their worker is told to stop.
  outside.answerAfter(1_000);
  await moves(scene, async () => {
    for (const node of ['node1', 'node2', 'node3']) {
      await project.page('kubectl drain NODE --ignore-daemonsets --delete-emptydir-data', { NODE: node });
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
    const { api, worker } = await project.pods();
    for (const nth of [0, 1]) {
      const both: string[] = [];
      for (const pod of [api[nth], worker[nth]]) {
        if (pod === undefined) throw new Error(`no pod ${nth}`);
        await project.signal(pod.uid, 'node', 'SIGKILL');
        both.push(pod.name);
      }
      const restarts = () =>
        project.run(
          `kubectl get pod ${both.join(' ')} -o jsonpath='{.items[*].status.containerStatuses[0].restartCount}'`,
        );
      await soon(async () => !(await restarts()).split(' ').includes('0'), 'containers started again');
      await project.settled();
    }
  });
}

/** The frontend of Temporal answers, and what keeps its histories does not: workers say so. */
async function histories(project: Cluster): Promise<void> {
  const uid = await project.run(
    "kubectl get pod temporal-frontend --namespace temporal -o jsonpath='{.metadata.uid}'",
  );
  await project.signal(uid, 'history', 'SIGSTOP');
  await soon(
    async () => (await project.pods()).worker.every(({ ready }) => !ready),
    'no worker ready without histories',
  );
  await project.signal(uid, 'history', 'SIGCONT');
}

/** Releases that cannot work: the old pods serve on, and the commands of the page show why. Their jobs fail while Temporal has no histories. */
export async function mistakes(scene: Scene): Promise<void> {
  const { project } = scene;
  const pods = async () =>
    (await project.pods()).api
      .filter(({ ready }) => ready)
      .map(({ uid }) => uid)
      .toSorted();
  const before = await pods();
  const secret = async (name: string, change = '') => {
    await project.run(`sed '${change}' ${name}.env >changed.env`);
    await project.page(
      'kubectl create secret generic quotes-api --from-env-file=api.env --dry-run=client -o yaml | kubectl replace -f -',
      { 'api.env': 'changed.env', 'quotes-api': `quotes-${name}` },
    );
  };
  const WRONG = 's/:[0-9a-f]*@quotes-rw/:wrong@quotes-rw/';
  const fails = async (change: string, limit: string) => {
    const line = project.words(INSTALL, {
      '--wait': `--set ${change} --set migrate.deadlineSeconds=20 --wait`,
      '10m': limit,
    });
    const { code, out } = await project.try(line);
    notStrictEqual(code, 0, out);
    deepStrictEqual(await pods(), before);
    return out;
  };
  const jobs = async () => {
    // An image that no registry has.
    match(await fails('image.tag=0.9.9', '60s'), /quotes-migrate/);
    match(await project.page('kubectl events --types=Warning'), /Failed to pull image "\S+:0\.9\.9"/);
    // A migration that fails.
    await secret('migrate', WRONG);
    match(await fails('image.tag=0.1.1', '60s'), /quotes-migrate/);
    match(await project.page('kubectl logs job/quotes-migrate'), /password authentication failed/);
    await secret('migrate');
  };
  await unnoticed(scene, async () => {
    await Promise.all([jobs(), histories(project)]);
    // A wrong password of the API, whose pods a changed setting replaces.
    await secret('api', WRONG);
    match(await fails('api.env.LOG_LEVEL=debug', '20s'), /timed out|deadline/);
    const POD = /^(quotes-api\S+) +0\/1/m.exec(await project.page('kubectl get pods'))?.[1];
    ok(POD);
    match(await project.page('kubectl describe pod POD', { POD }), /probe failed|BackOff/);
    match(await project.page('kubectl logs POD', { POD }), /password authentication failed/);
    // Three tries have failed in a row.
    const REVISION = /^(\d+).*\bdeployed\b/m.exec(await project.page('helm history quotes'))?.[1];
    ok(REVISION);
    await project.page('helm rollback quotes REVISION --wait', { REVISION });
    deepStrictEqual(await pods(), before);
    await secret('api');
    await project.settled(FIRST);
  });
}

/**
 * From workers without a build id to those of a build, and from that build to the next: both run until `ops` has moved the deliveries. Meanwhile
 * there are more API processes, as their processors are busy.
 */
export async function builds(scene: Scene): Promise<void> {
  const { project, outside } = scene;
  const release = (workers: string, more = '') =>
    upgrade(project, '0.1.1', ` --set 'worker.builds={${workers}}'${more}`);
  const images = async () => (await project.pods()).worker.map(({ image }) => image.replace(/.*:/, ''));
  const works = async () => {
    const before = outside.arrived.size;
    await soon(() => outside.arrived.size >= before + 5, 'five more notifications delivered');
  };
  await unnoticed(scene, async () => {
    await release('0.1.0,0.1.1', ' --set api.autoscaling.max=3 --set api.autoscaling.cpuPercent=10');
    deepStrictEqual((await images()).toSorted(), ['0.1.0', '0.1.0', '0.1.1', '0.1.1']);
    await project.page('ops deployments set-current 0.1.0');
    // Slow enough for some to be under way.
    outside.answerAfter(3_000);
    await works();
    match(await project.page('ops deployments check'), /^Replayed: [1-9]/);
    outside.answerAfter(0);
    await project.page('ops deployments set-current 0.1.1');
    await works();
    await soon(
      async () => (await project.pods()).api.filter(({ ready }) => ready).length === 3,
      'a third API process',
    );
    await upgrade(project, '0.1.1', " --set 'worker.builds={0.1.1}'");
    await soon(async () => !(await images()).includes('0.1.0'), 'no workers of the build before');
    await works();
    spread(await project.settled(SECOND));
  });
}

/** A node whose processes freeze, and which is gone half a minute later. */
export async function nodeLost(scene: Scene): Promise<void> {
  const { project, figures } = scene;
  const { api, worker } = await project.settled();
  const node = api.find((one) => worker.includes(one)) ?? api[0] ?? '';
  let frozenAt = 0;
  const lost = await underTraffic(scene, async () => {
    frozenAt = Date.now();
    await project.freeze(node);
    await sleep(30_000);
    await project.end(node);
    const gone = async () =>
      Object.values(await project.pods()).every((pods) => pods.every((one) => one.node !== node));
    await soon(gone, `no pod on ${node}`);
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
  const left = () =>
    project.run(
      `kubectl get ${kinds} -l app.kubernetes.io/instance=quotes -o name --field-selector metadata.namespace=quotes`,
    );
  await soon(async () => (await left()) === '', 'nothing left');
}
