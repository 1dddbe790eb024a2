import { writeBeat } from '../../db/processes';
import { Refused } from '../../db/refused';
import type { TemporalOrders } from '../../ops/temporal';
import { useOps } from './run';

const ops = useOps();
beforeEach(() => void (ops.temporal = {}));

/** A deployment that does what it is told. */
function deploymentOf(...builds: string[]): void {
  let state: Awaited<ReturnType<TemporalOrders['describeDeployment']>> = {
    current: null,
    ramping: null,
    builds: builds.map((buildId) => ({ buildId, status: 'inactive' })),
  };
  ops.temporal = {
    describeDeployment: async () => state,
    setCurrent: async (buildId) => {
      if (!builds.includes(buildId)) throw new Refused('conflict', `no build ${buildId}`);
      state = { ...state, current: buildId, ramping: null };
    },
    ramp: async (buildId, percent) => {
      state = { ...state, ramping: buildId === null ? null : { buildId, percent } };
    },
  };
}

test('shows builds, ramps one and makes it current; the log has both', async () => {
  deploymentOf('one', 'two');
  expect(await ops.text('deployments show')).toContain('Current: none, so workers without a build id');
  expect(await ops.text('deployments set-current one')).toContain('WARNING: no worker is of it');
  await ops.json('deployments ramp two --percent 5');
  expect(await ops.text('deployments show')).toContain('Current: one, two gets 5 %');
  await ops.json('deployments ramp --end');
  expect(await ops.json('deployments show')).toEqual({
    current: 'one',
    ramping: null,
    builds: ['one', 'two'].map((build_id) => ({ build_id, status: 'inactive' })),
  });
  await writeBeat(ops.database.sql, {
    processId: 'w',
    kind: 'worker',
    host: 'a',
    build: 'two',
    temporal: true,
  });
  expect(await ops.text('deployments set-current two')).toBe('Build two is current.\n');
  const verbs = ['set-current', 'ramp', 'ramp', 'set-current'];
  expect(await ops.column('action', 'changes list')).toEqual(verbs.map((verb) => `deployments.${verb}`));
});

test('a release that cannot continue what is running is named before it becomes current', async () => {
  const replayed = { sending: 2, retrying: 300, paused: 0, retention: 0 };
  ops.temporal = {
    replayRunning: async (_, most) => ({ replayed: { ...replayed, retrying: most }, broken: [] }),
  };
  expect(await ops.text('deployments check')).toBe(
    'Replayed: 2 sending, 300 retrying, 0 paused, 0 retention.\n',
  );
  expect(await ops.json('deployments check --most 7')).toMatchObject({
    replayed: { retrying: 7 },
    broken: [],
  });
  const broken = [{ workflowId: 'notification/ntf_1/1', error: 'Activity type mismatch' }];
  ops.temporal = { replayRunning: async () => ({ replayed, broken }) };
  await ops.refuses(1, 'This release cannot continue 1 of them', 'deployments check');
});

test('says why Temporal refuses, and ends with 3 when it cannot be reached', async () => {
  deploymentOf('one');
  await ops.refuses(2, 'Build nobody does not exist', 'deployments set-current nobody');
  await ops.refuses(1, '', 'deployments ramp one');
  await ops.refuses(2, '', 'deployments ramp one --percent 101');
  ops.temporal = {};
  await ops.refuses(3, '', 'deployments show');
});
