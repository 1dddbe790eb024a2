import { isFinancePage } from '../../contracts/finance-url';

/** What WHATWG's own parser says of the host. */
function hostIsReal(host: string): boolean {
  try {
    return new URL(`https://${host}/`).hostname !== '';
  } catch {
    return false;
  }
}

test.each([
  'shop.example',
  'a-b.c-d.example',
  'a--b.example',
  'SHOP.EXAMPLE',
  'localhost',
  'shop.example.',
  'shop.example:8443',
  'shop.example:99999',
  'shop..example',
  '-shop.example',
  'shop-.example',
  'sh_op.example',
  'xn--nxasmq6b.example',
  'xn--a.example',
  'shop.xn--a',
  '1.2.3.4',
  '1.2.3.256',
  '1.2.3.4.5',
  'shop.1',
  'shop.0x7f',
  '0x7f.1',
  'sh%6fp.example',
  'sh%20op.example',
  'münchen.example',
  '[::1]',
  '[::g]',
])('a host is judged as a URL parser judges it: %s', (host) => {
  for (const after of ['', '/', '/finance?basket=1#top', '?a=b', '#c'])
    expect(isFinancePage(`https://${host}${after}`)).toBe(hostIsReal(host));
});
