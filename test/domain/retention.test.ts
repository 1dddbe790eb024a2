import { addRemoved, beyondUsual, readRemoval, type RemovedByPeriod } from '../../domain/retention';

const quotes = (removed: RemovedByPeriod) => beyondUsual({ kind: 'quotes', removed });
const payloads = (removed: RemovedByPeriod) => beyondUsual({ kind: 'payloads', removed });

test.each<[string, number, typeof quotes, RemovedByPeriod]>([
  ['one month, however large', 0, quotes, { '2026-01': 9_000_000 }],
  ['nothing', 0, quotes, {}],
  [
    'single rows of older months, which have ended late',
    0,
    quotes,
    { '2026-01': 5_000, '2025-12': 60, '2025-03': 40 },
  ],
  ['bodies of 24 hours, which are in two days', 0, payloads, { '2026-01-01': 700, '2026-01-02': 300 }],
  // The rows beside the fullest count.
  ['more than one month', 101, quotes, { '2026-01': 5_000, '2025-12': 101 }],
  ['three months', 7_000, quotes, { '2026-01': 5_000, '2025-12': 4_000, '2025-11': 3_000 }],
  ['bodies of three days', 300, payloads, { '2026-01-01': 300, '2026-01-02': 800, '2026-01-03': 400 }],
  // Rows without a month should not be.
  ['rows without a month', 101, quotes, { default: 101 }],
  ['rows without a month, beside others', 120, quotes, { '2026-01': 5_000, default: 60, '2025-12': 60 }],
])('a run of the retention that removed %s is beyond the usual by %d', (_what, rows, beyond, removed) => {
  expect(beyond(removed)).toBe(rows);
});

test('what steps removed adds up by period', () => {
  expect(addRemoved({ '2026-01': 2 }, { '2026-01': 3, default: 1 })).toEqual({ '2026-01': 5, default: 1 });
});

test('a removal that cannot be one is refused', () => {
  const good = { kind: 'quotes', removed: { '2026-01': 5, default: 0 } };
  expect(readRemoval(good)).toEqual(good);
  const many = Object.fromEntries(Array.from({ length: 4_001 }, (_, nth) => [`${1000 + nth}-01`, 1]));
  for (const bad of [
    null,
    {},
    { kind: 'change_log', removed: {} },
    { kind: 'quotes', removed: { '2026-01': -1 } },
    { kind: 'quotes', removed: { '2026-01': 'many' } },
    { kind: 'quotes', removed: { '<script>': 1 } },
    { kind: 'quotes', removed: many },
  ])
    expect(() => readRemoval(bad)).toThrow('a removal is a kind');
});
