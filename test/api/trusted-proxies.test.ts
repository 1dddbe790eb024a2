import { trustedProxies } from '../../api/trusted-proxies';

test('no proxy, no trust', () => {
  expect(trustedProxies([])).toBe(false);
});

test.each([
  ['10.1.2.3', true],
  ['10.2.0.1', false],
  ['192.0.2.1', true],
  ['192.0.2.2', false],
  // As a listener on :: sees its IPv4 peers.
  ['::ffff:192.0.2.1', true],
  ['::ffff:192.0.2.2', false],
  ['2001:db8::5', true],
  ['2001:db9::5', false],
  ['', false],
])('%s is trusted: %s, asked again too', (address, verdict) => {
  const trusts = trustedProxies(['10.1.0.0/16', '192.0.2.1', '2001:db8::/32']);
  if (trusts === false) throw new Error('no verdicts');
  expect([trusts(address), trusts(address)]).toEqual([verdict, verdict]);
});

test.each(['proxy.example', '10.0.0.0/33', '10.0.0.0/x', '300.1.1.1'])('%s is refused', (proxy) => {
  expect(() => trustedProxies([proxy])).toThrow(`not an address or a CIDR: ${proxy}`);
});
