import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../testbed/until';
import { outageSeconds, useOutside } from '../support/outside';
import { storeStatus } from '../../testbed/notifications';

/** Fault row 125, with 200 endpoints of as many partners, domains and addresses. */
const PARTNERS = Array.from({ length: 200 }, (_, nth) => ({
  partnerId: `P${300_000 + nth}`,
  host: `hooks.partner${nth}.test`,
  addresses: [`10.77.0.${nth + 1}`],
}));
const THERE = '10.77.0.0/24';
const CUT_MS = 60_000;
/** A host whose addresses are dropped at first. */
const SLOW = { host: 'hooks.slow.test', addresses: ['10.77.1.1', '10.77.1.2'] };

const ip = (command: string) => execFileSync('ip', command.split(' '));
// What goes into one end of this cable is for nobody at its other end.
ip('link add hole type veth peer name nobody');
ip('addr add 10.78.0.1/32 dev hole');
ip('link set hole arp off up');
ip('link set nobody arp off up');
ip(`route add local ${THERE} dev lo`);

const { outside, database } = useOutside({ partners: PARTNERS, others: [SLOW], cidr: '10.77.0.0/16' });

const events = () =>
  Promise.all(
    PARTNERS.map(async ({ partnerId }) => (await storeStatus(database, { partnerId })).notificationId),
  );
const delivered = async (ids: readonly string[]) => {
  const [row] = await database.sql<{ count: number }[]>`
    select count(*)::int from notifications where notification_id = any(${[...ids]}) and end_state = 'delivered'`;
  return row?.count;
};

test.each([
  ['packets are dropped', `route add ${THERE} dev hole`],
  ['it is unreachable', `route add unreachable ${THERE}`],
])(
  '%s',
  async (_how, cut) => {
    const before = await events();
    await until(async () => (await delivered(before)) === 200, 'all is well', 120_000);
    await database.sql`delete from outages`;
    ip(`route del local ${THERE} dev lo`);
    ip(cut);
    const beganMs = performance.now();
    const ids = await events();
    await until(async () => ((await outageSeconds(outside.worker)) ?? 0) > 0, 'it is noted as ours');
    await sleep(CUT_MS - (performance.now() - beganMs));
    ip(cut.replace(' add ', ' del '));
    ip(`route add local ${THERE} dev lo`);
    const rows = await database.sql`select max(step) as step from deliveries`;
    expect(rows[0]?.['step'] ?? 0).toBeLessThanOrEqual(1);
    const [failing] = await database.sql<{ count: number }[]>`
      select count(*)::int from webhook_endpoints where failures_since_success > 1 or state <> 'active'`;
    expect(failing?.count).toBe(0);
    await until(async () => (await delivered(ids)) === 200, 'all are delivered');
  },
  240_000,
);

test('an address that connects late wins over a later one that does not', async () => {
  const [first = ''] = SLOW.addresses;
  ip('route add 10.77.1.0/24 dev hole');
  const sending = outside.sender.send({
    endpointId: 'whe_slow',
    alone: false,
    onSurplus: () => undefined,
    url: `https://${SLOW.host}:${outside.port}/`,
    headers: { 'webhook-id': 'evt_1' },
    body: '{}',
  });
  // The second one is tried after 250 ms, and the kernel asks the first again after a second.
  await sleep(500);
  ip(`route add local ${first}/32 dev lo`);
  const { outcome, address, addresses } = await sending;
  expect([outcome.kind, address, addresses]).toEqual(['delivered', first, SLOW.addresses]);
});
