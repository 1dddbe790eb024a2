import { listApplications } from '../../db/applications/applications';
import { backlog, deliveryFigures } from '../../db/figures';
import { sweepQueues } from '../../db/notifications/claim';
import { lowestNotificationId } from '../../db/notifications/notification';
import { listNotifications } from '../../db/notifications/operator';
import { listForPartner } from '../../db/notifications/partner';
import { NOTIFICATION_STATUSES, type NotificationStatus } from '../../domain/notification-states';
import { median, type Figures } from '../harness/rounds';
import type { Side } from './side';

const TIMES = 9;
const WEEK_SECONDS = 7 * 86_400;
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString();
const ALL = { since: ago(WEEK_SECONDS), limit: 50, paused: false };

/** What operators, partners and the scrape of metrics read: pages of fifty, which are full on both sides. */
const LISTS: Readonly<Record<string, (side: Side) => Promise<unknown>>> = {
  notifications: ({ owner }) => listNotifications(owner.db, { ...ALL, undelivered: false }),
  undelivered: ({ owner }) => listNotifications(owner.db, { ...ALL, undelivered: true }),
  of_a_partner: ({ owner, partners: [partnerId] }) =>
    listNotifications(owner.db, { ...ALL, undelivered: false, partnerId }),
  of_an_application: async ({ owner }) => {
    const [newest] = await listNotifications(owner.db, { ...ALL, undelivered: false, limit: 1 });
    const applicationId = newest?.applicationId ?? undefined;
    const since = ago(400 * 86_400);
    return listNotifications(owner.db, { ...ALL, undelivered: false, applicationId, since });
  },
  applications: ({ owner }) => listApplications(owner.db, { since: ago(WEEK_SECONDS), limit: 50 }),
  page_of_partner: (side) => page(side),
  ...Object.fromEntries(
    NOTIFICATION_STATUSES.map((status) => [`page_${status}`, (side: Side) => page(side, status)]),
  ),
  claim_of_nothing: ({ prepared }) => sweepQueues(prepared.sql, ''),
  metrics: async ({ prepared }) => {
    await backlog(prepared.sql);
    await deliveryFigures(prepared.sql);
  },
};

const page = ({ pages, partners: [partnerId = ''] }: Side, status?: NotificationStatus) =>
  listForPartner(pages.sql, {
    partnerId,
    environment: 'live',
    status,
    fromId: 'ntf_',
    beforeId: lowestNotificationId(2 ** 48 - 1),
    limit: 25,
  });

/** The median of some readings of each: `list_<name>_ms`. */
export async function measureLists(side: Side): Promise<Figures> {
  const found: Record<string, number> = {};
  for (const [name, read] of Object.entries(LISTS)) {
    const times: number[] = [];
    for (let nth = 0; nth < TIMES; nth += 1) {
      const startedAt = performance.now();
      await read(side);
      times.push(performance.now() - startedAt);
    }
    found[`list_${name}_ms`] = median(times);
  }
  return found;
}
