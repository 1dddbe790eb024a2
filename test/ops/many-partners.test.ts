import { useOps } from './run';

const ops = useOps();

const addPartners = (from: number, to: number) => ops.database.sql`
  insert into partners (partner_id, name) select 'P' || n, 'Example' from generate_series(${from}::int, ${to}::int) n`;

test('a long table has one frame and one heading', async () => {
  await addPartners(200_001, 200_050);
  const [top, head, below, ...lines] = (await ops.text('partners list')).trimEnd().split('\n');
  expect([top?.[0], below?.[0], lines.at(-1)?.[0]]).toEqual(['┌', '├', '└']);
  expect(head).toMatch(/^│ partner .* created +│$/);
  expect(lines.slice(0, -1).map((line) => line.slice(0, 10))).toEqual(
    Array.from({ length: 50 }, (_, at) => `│ P${200_001 + at} `),
  );
});

test('the usage of 10,000 partners is added up within the time of a test', async () => {
  await addPartners(200_051, 210_000);
  await ops.database.sql`
    insert into monthly_counts (partner_id, environment, month, event_type, delivered, failed)
    select partner_id, environment, service_month(), 'credit_application.' || step, 3, 1
    from partners, unnest(array['sandbox', 'live']) environment, unnest(array['created', 'accepted', 'declined']) step`;
  const { partners } = await ops.json('usage');
  expect(partners).toHaveLength(20_000);
  const counts = { quotes: 0, delivered: 9, failed: 3, resends: 0, recoveries: 0, recovered: 0 };
  expect(partners[0]).toEqual({ partner_id: 'P200001', environment: 'live', ...counts });
  expect(partners.at(-1)).toEqual({ partner_id: 'P210000', environment: 'sandbox', ...counts });
});
