import { listProcesses } from '../../db/processes';
import { keepBeating } from '../../runtime/beat';
import { until } from '../../testbed/until';
import { useDatabase } from '../support/database';

const database = useDatabase();

test('a process whose question for its own trouble hangs still writes that it runs', async () => {
  const beat = keepBeating(
    database.sql,
    { processId: 'one', kind: 'api', build: null },
    { trouble: () => new Promise(() => undefined) },
  );
  try {
    await until(async () => (await listProcesses(database.db)).length === 1, 'its beat');
    expect(await listProcesses(database.db)).toMatchObject([{ kind: 'api', lost: false, trouble: null }]);
  } finally {
    await beat.stop();
  }
}, 60_000);
