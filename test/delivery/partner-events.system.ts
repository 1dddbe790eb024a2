import { setEndpointState } from '../../db/endpoints/endpoints';
import { switchPartner } from '../../db/catalogue/partners';
import { openApplication, tell } from '../support/applications';
import { until } from '../../testbed/until';
import { emptyNotifications } from '../support/database';
import { useService } from '../support/service';

/** What partners do for themselves, with a real worker, Temporal and endpoint. */
const { api, receiver, register } = useService({
  worker: { DELIVERY_LADDER_SECONDS: '0,1', RECONCILE_AFTER_MS: '2000' },
});
let endpoint: { endpointId: string; secret: string };

beforeEach(async () => {
  await emptyNotifications(api.database, 'recoveries');
  await api.database.sql`update partners set recovery = 'enabled'`;
  endpoint = await register();
  receiver.reset();
});

const get = async (path: string) => {
  const answer = await api.call({ method: 'GET', path });
  expect(answer.status).toBe(200);
  return answer.body.data;
};
const listed = async (query = '') =>
  (await get(`/v1/notifications?${query}`)).notifications as {
    notification_id: string;
    event_id: string;
    status: string;
    next_attempt_at: string | null;
  }[];
const all = (status: string, count: number) =>
  until(
    async () => {
      const statuses = (await listed()).map((one) => one.status);
      return statuses.length === count && statuses.every((one) => one === status);
    },
    `${count} are ${status}`,
    40_000,
  );
async function application(...statuses: ('submitted' | 'accepted' | 'signed')[]) {
  const opened = await openApplication(api.database, { partnerId: api.partnerId });
  for (const status of statuses) await tell(api.database, opened.applicationId, status);
  return opened.applicationId;
}
const hourAgo = () => new Date(Date.now() - 3_600_000).toISOString();
const recover = (fields = {}) =>
  api.call({
    path: '/v1/notifications/recover',
    body: { created_from: hourAgo(), created_to: new Date(Date.now() + 60_000).toISOString(), ...fields },
  });

describe('a recovery under way', () => {
  async function failed(count: number): Promise<void> {
    receiver.behave(() => 500);
    for (let at = 0; at < count; at += 1) await application();
    await all('failed', count);
    receiver.reset();
  }
  const statusOf = async (id: string) =>
    (await get(`/v1/notifications/recoveries/${id}`)) as {
      status: string;
      resent: number;
    };

  test('stops when recoveries are switched off or the endpoint is gone, and another one takes up the rest', async () => {
    await failed(12);
    const { sql } = api.database;
    // So that none has ended before it is stopped.
    await sql`create function one_a_second() returns trigger language plpgsql as
      'begin new.per_second := 1; return new; end'`;
    await sql`create trigger one_a_second before insert on recoveries
      for each row execute function one_a_second()`;
    const begun = async () => {
      const { recovery_id: id } = (await recover()).body.data;
      await until(async () => (await statusOf(id)).resent >= 1, 'it has begun');
      return id as string;
    };
    const first = await begun();
    await switchPartner(api.database.db, api.partnerId, { recovery: 'disabled' });
    // An answer that took long is remembered for a while.
    const hasStopped = (id: string) =>
      until(async () => (await statusOf(id)).status === 'stopped', 'it has stopped');
    await hasStopped(first);
    const { resent } = await statusOf(first);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect((await statusOf(first)).resent).toBe(resent);

    await switchPartner(api.database.db, api.partnerId, { recovery: 'enabled' });
    const second = await begun();
    const set = (state: 'active' | 'disabled') =>
      api.database.db.transaction((tx) =>
        setEndpointState(
          tx,
          endpoint.endpointId,
          state === 'active' ? { state } : { state, reason: 'operator' },
        ),
      );
    await set('disabled');
    await hasStopped(second);
    expect((await statusOf(second)).resent).toBeLessThan(12);
    await set('active');
    await sql`drop trigger one_a_second on recoveries`;
    expect((await recover()).status).toBe(202);
    await all('delivered', 12);
  });

  test('left by a worker that died is taken up by another when its lease is over', async () => {
    await failed(3);
    // As a dead worker leaves it: in its name, and nothing written for longer than the lease.
    await api.database.sql`insert into recoveries
      (recovery_id, partner_id, environment, key_id, since, until, per_second, found, runner, updated_at)
      values ('rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA', ${api.partnerId}, 'sandbox', 'key_x', now() - interval '1 hour', now(),
        10, 3, 'dead', now() - interval '31 seconds')`;
    await until(
      async () => (await statusOf('rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA')).status === 'finished',
      'another has finished it',
      40_000,
    );
    expect(receiver.received).toHaveLength(3);
  });
});
