import { evidence, judgeReach, SEEN_FOR_MS, type EndpointSeen } from '../../domain/our-outage';

const NOW = 1_000_000;
const seen = (nth: number, of: Partial<EndpointSeen> = {}): EndpointSeen => ({
  partnerId: `P${nth}`,
  domain: `partner${nth}.test`,
  addresses: [`192.0.2.${nth}`],
  atMs: NOW - 30_000 + nth * 100,
  reached: false,
  ...of,
});
const many = (count: number, of: (nth: number) => Partial<EndpointSeen> = () => ({})) =>
  Array.from({ length: count }, (_, nth) => seen(nth, of(nth)));
const kindOf = (all: readonly EndpointSeen[]) => judgeReach(all, NOW).kind;

test('ten unrelated endpoints that fail are our outage, since the first of them', () => {
  expect(judgeReach(many(10), NOW)).toEqual({ kind: 'cut_off', sinceMs: NOW - 30_000 });
  expect(kindOf(many(9))).toBe('perhaps');
  expect(kindOf(many(2))).toBe('perhaps');
  expect(kindOf(many(1))).toBe('fine');
  expect(kindOf([])).toBe('fine');
});

test('what was reached before they failed does not hide it; what was reached since does', () => {
  const before = (nth: number) => ({
    partnerId: `Q${nth}`,
    domain: `q${nth}.test`,
    addresses: [`198.51.100.${nth}`],
  });
  const earlier = many(100, (nth) => ({ ...before(nth), atMs: NOW - 40_000, reached: true }));
  expect(judgeReach([...earlier, ...many(10)], NOW)).toEqual({ kind: 'cut_off', sinceMs: NOW - 30_000 });
  const later = many(100, (nth) => ({ ...before(nth), atMs: NOW - 1_000, reached: true }));
  expect(kindOf([...later, ...many(10)])).toBe('fine');
});

test('one that is reached among twenty does not hide it, two do', () => {
  const reached = (...which: number[]) => kindOf(many(20, (nth) => ({ reached: which.includes(nth) })));
  expect(reached(19)).toBe('cut_off');
  expect(reached(18, 19)).toBe('fine');
});

test.each([
  ['of one partner', () => ({ partnerId: 'P1' })],
  ['of one domain', () => ({ domain: 'host.test' })],
  ['at one address', (nth: number) => ({ addresses: ['203.0.113.1', `192.0.2.${nth}`] })],
  ['in pairs', (nth: number) => ({ addresses: [`203.0.113.${nth >> 1}`] })],
  ['in a chain', (nth: number) => ({ addresses: [`203.0.113.${nth}`, `203.0.113.${nth + 1}`] })],
])('ten endpoints %s are not ten', (_what, of) => {
  expect(kindOf(many(10, of))).not.toBe('cut_off');
});

test('of related endpoints, one that is reached speaks for all', () => {
  const all = many(30, (nth) => ({
    addresses: [`203.0.113.${nth % 15}`],
    reached: nth === 29 || nth === 28,
  }));
  expect(kindOf(all)).toBe('fine');
});

test('attempts of more than a minute ago say nothing', () => {
  expect(kindOf(many(10, () => ({ atMs: NOW - SEEN_FOR_MS })))).toBe('fine');
});

test('endpoints with IPv6 alone say nothing, unless there are no others', () => {
  const six = many(10, (nth) => ({
    partnerId: `S${nth}`,
    domain: `s${nth}.test`,
    addresses: [`2001:db8::${nth}`],
    atMs: NOW - 100,
  }));
  expect(kindOf(evidence([...many(10, () => ({ reached: true })), ...six]))).toBe('fine');
  expect(kindOf(evidence([...many(10), ...six]))).toBe('cut_off');
  expect(kindOf(evidence(six))).toBe('cut_off');
});
