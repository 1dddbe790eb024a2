import * as fc from 'fast-check';
import { isIPv4 } from 'node:net';
import { createAddressGuard, isPublicAddress } from '../../outbound/connect';

/** First and last address of what may not be connected to: the IANA special-purpose registries, and more. */
const NOT_PUBLIC: readonly (readonly [string, string, string])[] = [
  ['this network', '0.0.0.0', '0.255.255.255'],
  ['private', '10.0.0.0', '10.255.255.255'],
  ['carrier-grade NAT, with the metadata service of Alibaba', '100.64.0.0', '100.127.255.255'],
  ['loopback', '127.0.0.0', '127.255.255.255'],
  ['link-local, with most metadata services', '169.254.0.0', '169.254.255.255'],
  ['private', '172.16.0.0', '172.31.255.255'],
  ['protocol assignments, with the metadata service of Oracle', '192.0.0.0', '192.0.0.255'],
  ['documentation 1', '192.0.2.0', '192.0.2.255'],
  ['AS112', '192.31.196.0', '192.31.196.255'],
  ['AMT', '192.52.193.0', '192.52.193.255'],
  ['6to4 relays', '192.88.99.0', '192.88.99.255'],
  ['private', '192.168.0.0', '192.168.255.255'],
  ['AS112', '192.175.48.0', '192.175.48.255'],
  ['benchmarking', '198.18.0.0', '198.19.255.255'],
  ['documentation 2', '198.51.100.0', '198.51.100.255'],
  ['documentation 3', '203.0.113.0', '203.0.113.255'],
  ['multicast', '224.0.0.0', '239.255.255.255'],
  ['reserved and broadcast', '240.0.0.0', '255.255.255.255'],
  ['the metadata service of Azure', '168.63.129.16', '168.63.129.16'],
  ['unspecified', '::', '::'],
  ['loopback', '::1', '::1'],
  ['IPv4-compatible', '::1.1.1.1', '::255.255.255.255'],
  ['IPv4-mapped', '::ffff:0.0.0.0', '::ffff:255.255.255.255'],
  ['IPv4-translated', '::ffff:0:0.0.0.0', '::ffff:0:255.255.255.255'],
  ['NAT64 of this network', '64:ff9b::', '64:ff9b::0.255.255.255'],
  ['beside NAT64', '64:ff9a:ffff:ffff:ffff:ffff:1.1.1.1', '64:ff9b::1:1.1.1.1'],
  ['local NAT64', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['discard', '100::', '100::ffff:ffff:ffff:ffff'],
  ['protocol assignments, with Teredo', '2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['documentation', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['AS112', '2620:4f:8000::', '2620:4f:8000:ffff:ffff:ffff:ffff:ffff'],
  ['reserved', '3000::', '3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['6bone', '3ffe::', '3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['documentation', '3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['segment routing', '5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['given to nobody', '4000::', '5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['unique local, with a metadata service of AWS', 'fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['link-local', 'fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['site-local', 'fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['multicast', 'ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
];

it.each(NOT_PUBLIC)('%s (%s to %s) is not public', (_what, first, last) => {
  expect(isPublicAddress(first)).toBe(false);
  expect(isPublicAddress(last)).toBe(false);
});

const BESIDE_V4 = [
  '1.1.1.1',
  '9.255.255.255',
  '100.63.255.255',
  '126.255.255.255',
  '168.63.129.15',
  '169.253.255.255',
];
const MORE_V4 = ['172.15.255.255', '192.0.1.0', '192.167.255.255', '198.17.255.255', '223.255.255.255'];
it.each([...BESIDE_V4, ...MORE_V4, '2606:4700:4700::1111', '2001:200::1', '2001:db7::1', '2003::1'])(
  '%s is public',
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

const NUMBERS = ['1.1.1', '0x01010101', '16843009', '01.1.1.1', ' 1.1.1.1'];
it.each([...NUMBERS, '', 'localhost', '1.1.1.1:443', '[2606:4700::1]', '1.1.1.1/32'])(
  'what is no address in its plain form is not public: %j',
  (text) => {
    expect(isPublicAddress(text)).toBe(false);
    expect(createAddressGuard(['0.0.0.0/0', '::/0'])(text)).toBe(false);
  },
);

test('no IPv4 address becomes public by being carried in IPv6', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
      const [high, low] = [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)];
      for (const carried of [
        `::${address}`,
        `::ffff:${address}`,
        `::ffff:0:${address}`,
        `64:ff9b:1::${address}`,
        `2002:${high}:${low}::1`,
        `2001:0:${high}:${low}::1`,
      ]) {
        expect(isPublicAddress(carried)).toBe(false);
      }
    }),
  );
});

test('an address of NAT64 is public where the IPv4 address in it is', () => {
  const special = NOT_PUBLIC.filter(([, first]) => isIPv4(first)).flatMap(([, first, last]) => [first, last]);
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.constantFrom(...special, ...BESIDE_V4, ...MORE_V4)), (address) => {
      expect(isPublicAddress(`64:ff9b::${address}`)).toBe(isPublicAddress(address));
    }),
  );
});

test('a guard allows its CIDRs besides, each in its own family', () => {
  const isAllowed = createAddressGuard(['127.0.0.0/8', 'fd00::/8']);
  const [within, outside] = [
    ['127.0.0.1', '127.255.0.1', 'fd00::1', '1.1.1.1'],
    ['10.0.0.1', '::1', '::ffff:127.0.0.1', 'fc00::1'],
  ];
  expect([...within, ...outside].filter(isAllowed)).toEqual(within);
});

test.each(['127.0.0.1', 'localhost', '127.0.0.0/33', '10/8', '::1/129'])('%s is no CIDR', (text) => {
  expect(() => createAddressGuard([text])).toThrow('not a CIDR');
});
