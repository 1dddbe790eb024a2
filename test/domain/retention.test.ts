import { readRemoval } from '../../domain/retention';

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
