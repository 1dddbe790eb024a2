import { createSecureContext, type TlsOptions } from 'node:tls';
import { createAuthority } from '../../runtime/certificates/issue';
import { certificateFor, EXPIRED, VALID } from '../outbound/partner';
import { hostileRows, receiver } from './rows';
import { HERE, type Seen } from './scene';

const { row } = hostileRows();
const NAME = '*.partner.test';
const requests = { toUntrusted: 0 };

function expectTls(seen: Seen, detail: RegExp): void {
  expect(seen).toMatchObject({ state: 'failed', reason: 'exhausted', words: ['tls', 'tls', 'tls'] });
  expect(seen.attempts[0]?.answer).toMatch(detail);
  expect(requests.toUntrusted).toBe(0);
}

const UNTRUSTED: readonly (readonly [string, () => Promise<TlsOptions>, RegExp])[] = [
  ['an expired certificate', () => certificateFor(NAME, EXPIRED), /CERT_HAS_EXPIRED/],
  [
    'a self-signed certificate',
    () => createAuthority('n1.partner.test', VALID),
    /SELF_SIGNED|INVALID_PURPOSE/,
  ],
  ['a certificate for another host', () => certificateFor('*.other.test'), /ALTNAME_INVALID/],
  ['a wildcard that covers one label only', () => certificateFor('*.a.partner.test'), /ALTNAME_INVALID/],
  [
    'TLS 1.0',
    async () => ({ minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    /ERR_SSL|EPROTO/,
  ],
];
for (const [what, tls, detail] of UNTRUSTED) {
  row(
    `${what} is \`tls\` at every attempt, and no request is sent`,
    async ({ host, register }) => {
      const { port } = await receiver(
        (_request, response) => {
          requests.toUntrusted += 1;
          response.end();
        },
        await tls(),
      );
      await register(`https://${host}:${port}/`);
    },
    (seen) => expectTls(seen, detail),
  );
}

row(
  'a server that refuses the handshake with a reset or closes in it fails, and the ladder goes on',
  async ({ host, register }) => {
    const { port } = await receiver((_request, response) => response.end(), {
      SNICallback: (_name, done) => done(new Error('no such name')),
    });
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'failed', reason: 'exhausted' });
    expect(seen.words).toHaveLength(3);
    for (const word of seen.words) expect(['tls', 'reset']).toContain(word);
  },
);

row(
  'each attempt checks the certificate anew: good, then expired, then good again',
  async ({ host, register }) => {
    const contexts = (
      await Promise.all([VALID, EXPIRED, VALID].map((validity) => certificateFor(NAME, validity)))
    ).map((certificate) => createSecureContext(certificate));
    let handshakes = 0;
    let answered = 0;
    const { port } = await receiver(
      (_request, response) => {
        answered += 1;
        response.writeHead(answered === 1 ? 500 : 200).end();
      },
      { SNICallback: (_name, done) => done(null, contexts[handshakes++]) },
    );
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen).toMatchObject({ state: 'delivered', words: ['http_status', 'tls', 'delivered'] });
    expect(seen.attempts[1]?.answer).toContain('CERT_HAS_EXPIRED');
    expect(seen.attempts[2]?.address).toBe(HERE);
  },
);
