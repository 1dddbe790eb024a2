import { join } from 'node:path';
import { fileNeeds } from '../support/needs';
import { startNode } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';

fileNeeds('namespaces', 'iproute', 'etcd', 'Patroni', 'Postgres', 'HAProxy', 'Redis', 'Go');

/** It takes five minutes on two idle cores. The first time on a machine Temporal may have to be built. */
const LIMIT_MS = 1_500_000;

test(
  'a cluster loses its Postgres leader with all data, a Temporal host (killed, then frozen) and a worker, and nothing that it acknowledged',
  async () => {
    const root = join(__dirname, '../..');
    // Its processes have it on their command lines, which is how the run's watchdog finds them.
    const directory = runDirectory('storm-cluster');
    const command = ['--import', 'tsx', 'test/storm/cluster.ts', '--short', '--json'];
    const storm = startNode(command, { cwd: root, environment: { TMPDIR: directory } });
    const code = await storm.ended;
    const verdict: unknown = JSON.parse(storm.stdout().trim().split('\n').at(-1) || '{}');
    expect({ code, verdict, output: code === 0 ? '' : storm.output() }).toMatchObject({
      code: 0,
      verdict: {
        quotes_lost: 0,
        notifications_lost: 0,
        miscounted: 0,
        kills: { postgres_leader: 1, temporal: 2, worker: 1, release: 1 },
      },
      output: '',
    });
  },
  LIMIT_MS,
);
