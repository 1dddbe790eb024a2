import { useApi } from '../support/api';
import { refusal, type Answer } from '../../testbed/http-call';
import { internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { storeMany } from '../support/many-rows';
import { addEndpoint } from '../../testbed/notifications';
import { addPartner } from '../support/partner-events';

/** One partner asks for all that it can have at once (fault row 129). Others, and a lender, are served meanwhile. */
const api = useApi({ environment: { DATABASE_TIMEOUT_MS: '3000' } });
const AT_ONCE = 60;
const EACH = 50_000;

let lender: InternalClient;
let other: Awaited<ReturnType<typeof addPartner>>;
let recoveryId: string;
beforeAll(async () => {
  lender = await internalClient(api);
  other = await addPartner(api.database, 'P200002');
  for (const partnerId of [api.partnerId, other.partnerId]) await addEndpoint(api.database, { partnerId });
  await storeMany(api.database, { partnerId: api.partnerId, each: EACH, states: ['failed', 'held'] });
  recoveryId = (await recover({})).body.data.recovery_id;
  await api.database
    .sql`update notifications set recovery_id = ${recoveryId} where application_id like 'app\\_failed\\_%'`;
}, 300_000);

const iso = (agoMs: number) => new Date(Date.now() - agoMs).toISOString();
const recover = (more: object, key = api.keys.test) =>
  api.call({
    path: '/v1/notifications/recover',
    key,
    body: { created_from: iso(20 * 86_400_000), created_to: iso(0), ...more },
  });

/** What a lender and another partner do meanwhile. */
async function others(): Promise<readonly Answer[]> {
  const quote = () => api.quote({ merchant_id: SHOP, partner_id: other.partnerId }, { key: other.test });
  const answers: Answer[] = [];
  for (let round = 0; round < 5; round += 1) {
    const quoted = await quote();
    const opened = await lender.openLink(quoted.body.data.products[0].merchant_finance_url);
    const id = opened.body.data.credit_application_id as string;
    const event = { lender_event_id: `le-${id}`, status: 'accepted', occurred_at: iso(0) };
    answers.push(quoted, opened, await lender.tell(id, event), await lender.read(id));
    answers.push(
      await api.get('/v1/notifications', other.test),
      await recover({ dry_run: true }, other.test),
    );
    answers.push(await api.get('/v1/webhook-endpoint', other.test));
  }
  return answers;
}

const floods: Record<string, () => Promise<Answer>> = {
  'dry runs': () => recover({ dry_run: true }),
  'the progress of a large recovery': () => api.get(`/v1/notifications/recoveries/${recoveryId}`),
  'pages of a filter that finds nothing': () =>
    api.get('/v1/notifications?status=failed&event_type=credit_application.signed&limit=100'),
  'its endpoint': () => api.get('/v1/webhook-endpoint'),
};

test.each(Object.keys(floods))(
  `${AT_ONCE} at once of %s: that partner waits or is refused, others are served`,
  async (what) => {
    const flood = Promise.all(Array.from({ length: AT_ONCE }, floods[what] as () => Promise<Answer>));
    const [served, flooded] = await Promise.all([others(), flood]);
    expect(served.map(({ status }) => status)).toEqual(served.map(() => 200));
    const answers = flooded.map(({ status, body }) => `${status} ${body.error?.code ?? ''}`);
    const refused = what === 'dry runs' ? '409 RECOVERY_UNDER_WAY' : '429 RATE_LIMIT_EXCEEDED';
    expect(new Set(answers.filter((one) => one !== '200 ' && one !== refused))).toEqual(new Set());
    expect(answers).toContain('200 ');
    for (const { status, headers } of flooded) if (status === 429) expect(headers['retry-after']).toBe('1');
  },
  120_000,
);

test('800 at once of one lender: it waits or is refused; another lender, and a quote that memory cannot answer, are served', async () => {
  const another = await internalClient(api, { lender: 'lender_b' });
  const quoted = await api.quote({ merchant_id: SHOP });
  const opened = await lender.openLink(quoted.body.data.products[0].merchant_finance_url);
  const id = opened.body.data.credit_application_id as string;
  const tell = (_: unknown, nth: number) =>
    lender.tell(id, { lender_event_id: `flood-${nth}`, status: 'created', occurred_at: iso(0) });
  const flood = Promise.all(Array.from({ length: 800 }, tell));
  const served: Answer[] = [];
  for (let round = 0; round < 5; round += 1) {
    served.push(await another.read(`app_${'0'.repeat(26)}`));
    served.push(
      await api.quote({ merchant_id: `M90000${round}`, partner_id: other.partnerId }, { key: other.test }),
    );
  }
  expect(served.map(({ status }) => status)).toEqual(served.map(() => 404));
  for (const { status } of await flood) expect([200, 429]).toContain(status);
});

test('what is counted is 10,000 at most, and says so; a recovery begins all the same', async () => {
  const counted = await recover({ dry_run: true });
  expect(counted.body.data).toEqual({ matched: 10_000, matched_is_minimum: true });
  expect((await api.get('/v1/webhook-endpoint')).body.data).toMatchObject({
    held: 10_000,
    held_is_minimum: true,
  });
  expect(await recover({})).toMatchObject(refusal(409, 'RECOVERY_UNDER_WAY', { recovery_id: recoveryId }));
  expect((await recover({ dry_run: true }, other.test)).body.data).toEqual({ matched: 0 });
});
