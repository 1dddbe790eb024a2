import { Refused } from '../../db/refused';
import { makePastMonth, monthOf, storeOldQuote } from '../support/old-rows';
import { useOps } from './run';

const ops = useOps();
beforeAll(async () => {
  await makePastMonth(ops.database, monthOf(3_000));
  await storeOldQuote(ops.database, 3_000);
});
const quotes = () => ops.database.sql`select quote_id from quotes`;
const runs = () => ops.database.sql`select actor from change_log where action = 'retention.run'`;

test('counts what is past its time, with rights to read alone', async () => {
  const { counts } = await ops.json('retention run');
  const expected = {
    kind: 'quotes',
    past_its_time: 1,
    whole_months: [`quotes_${monthOf(3_000)}`],
    must_stay: 0,
  };
  expect(counts).toContainEqual(expect.objectContaining(expected));
  expect(await quotes()).toHaveLength(1);
});

test('show names the whole months that the next run removes', async () => {
  // Any login may write a line, and none can remove it.
  await ops.database.sql`
    insert into change_log (actor, action, subject, details) values ('x', 'retention.remove', 'quotes', '{"rows": "many"}')`;
  const out = await ops.text('retention show');
  expect(out).toContain(
    'The next run removes this: every day at 03:15 UTC (RETENTION_AT as this command reads it',
  );
  expect(out).toContain(`Whole months of quotes: quotes_${monthOf(3_000)}.`);
});

test('--yes lets a worker remove it, and says in the change log who wanted that; it removes nothing itself', async () => {
  ops.temporal = { startRetention: async () => undefined };
  expect(await ops.json('retention run --yes')).toEqual({ started: true });
  expect(await runs()).toEqual([{ actor: 'tester' }]);
  expect(await quotes()).toHaveLength(1);
});

test('one that is under way, or a Temporal that is away, is said, and leaves no line', async () => {
  ops.temporal = {
    startRetention: () => Promise.reject(new Refused('conflict', 'A removal is still under way.')),
  };
  await ops.refuses(1, 'still under way', 'retention run --yes');
  ops.temporal = {};
  await ops.refuses(3, '', 'retention run --yes');
  expect(await runs()).toHaveLength(1);
});
