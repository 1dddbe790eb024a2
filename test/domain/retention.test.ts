import { addRemoved, beyondUsual, readRemoval, type RemovedByPeriod } from '../../domain/retention';

const quotes = (removed: RemovedByPeriod) => beyondUsual({ kind: 'quotes', removed });
const payloads = (removed: RemovedByPeriod) => beyondUsual({ kind: 'payloads', removed });

describe('a run of the retention is usual', () => {
  test('when it removed one month, however large', () => {
    expect(quotes({ '2026-01': 9_000_000 })).toBe(0);
    expect(quotes({})).toBe(0);
  });
  test('when single rows of older months went with it, which have ended late', () => {
    expect(quotes({ '2026-01': 5_000, '2025-12': 60, '2025-03': 40 })).toBe(0);
  });
  test('when bodies of 24 hours went, which are in two days', () => {
    expect(payloads({ '2026-01-01': 700, '2026-01-02': 300 })).toBe(0);
  });
});

describe('it is more than usual', () => {
  test('when more than one month went: by the rows beside the fullest', () => {
    expect(quotes({ '2026-01': 5_000, '2025-12': 101 })).toBe(101);
    expect(quotes({ '2026-01': 5_000, '2025-12': 4_000, '2025-11': 3_000 })).toBe(7_000);
  });
  test('when bodies of more than two days went', () => {
    expect(payloads({ '2026-01-01': 300, '2026-01-02': 800, '2026-01-03': 400 })).toBe(300);
  });
  test('when rows without a month went, which there should not be', () => {
    expect(quotes({ default: 101 })).toBe(101);
    expect(quotes({ '2026-01': 5_000, default: 60, '2025-12': 60 })).toBe(120);
  });
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
