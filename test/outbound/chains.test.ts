import 'reflect-metadata';
import { KeyObject, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { VALID } from '../../testbed/tls';
import { closeAll, EXPIRED, HOST, post, served } from './partner';

afterEach(closeAll);

const EC = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const P384 = { name: 'ECDSA', namedCurve: 'P-384' } as const;
const rsa = (modulusLength: number) =>
  ({
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength,
    publicExponent: new Uint8Array([1, 0, 1]),
  }) as const;

interface Certificate {
  readonly subject: string;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly pem: string;
}
interface Wanted {
  readonly subject?: string;
  readonly names?: x509.JsonGeneralNames;
  readonly isAuthority?: boolean;
  readonly pathLength?: number;
  readonly uses?: readonly x509.ExtendedKeyUsage[];
  readonly validity?: typeof VALID;
  readonly algorithm?: typeof EC | typeof P384 | ReturnType<typeof rsa>;
  readonly hash?: 'SHA-1' | 'SHA-256';
  readonly keys?: webcrypto.CryptoKeyPair;
}

/** A certificate as the issuer would make it. Without an issuer it signs itself. */
async function certificate(issuer: Certificate | null, wanted: Wanted = {}): Promise<Certificate> {
  const { subject = HOST, isAuthority = false, pathLength, validity = VALID, algorithm = EC } = wanted;
  const { names = [{ type: 'dns', value: HOST }], uses = [x509.ExtendedKeyUsage.serverAuth] } = wanted;
  const keys = wanted.keys ?? (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']));
  const signer = issuer?.keys ?? keys;
  const made = await x509.X509CertificateGenerator.create({
    subject: `CN=${subject}`,
    issuer: `CN=${issuer?.subject ?? subject}`,
    ...validity,
    publicKey: keys.publicKey,
    signingKey: signer.privateKey,
    signingAlgorithm: { name: signer.privateKey.algorithm.name, hash: wanted.hash ?? 'SHA-256' },
    extensions: [
      new x509.BasicConstraintsExtension(isAuthority, pathLength, true),
      ...(isAuthority ? [] : [new x509.ExtendedKeyUsageExtension([...uses])]),
      ...(isAuthority || names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  });
  return { subject, keys, pem: `${made.toString('pem')}\n` };
}

const root = certificate(null, { subject: 'Root', isAuthority: true });
const authority = async (subject: string, wanted: Wanted = {}, issuer = root) =>
  certificate(await issuer, { subject, isAuthority: true, ...wanted });
const between = authority('Between');

/** A server's certificate, and what it sends with it. */
type Chain = () => Promise<readonly [leaf: Certificate, ...others: Certificate[]]>;
const leafOf = async (issuer: Promise<Certificate>, wanted: Wanted = {}) => certificate(await issuer, wanted);

/** Chains that servers send, and the failure of the attempt; null: it is delivered. */
const CHAINS: Readonly<Record<string, readonly [Chain, RegExp | null]>> = {
  'of the root': [async () => [await leafOf(root)], null],
  'of an authority between': [async () => [await leafOf(between), await between], null],
  'without the authority between': [
    async () => [await leafOf(between)],
    /UNABLE_TO_VERIFY_LEAF|UNABLE_TO_GET_ISSUER/,
  ],
  'with the root behind it': [async () => [await leafOf(between), await between, await root], null],
  'with itself twice': [
    async () => {
      const leaf = await leafOf(between);
      return [leaf, leaf, await between];
    },
    null,
  ],
  'of three authorities in the wrong order': [
    async () => {
      const second = authority('Second', {}, between);
      const third = authority('Third', {}, second);
      return [await leafOf(third), await between, await third, await second];
    },
    null,
  ],
  'with a certificate that has nothing to do with it': [
    async () => [await leafOf(between), await certificate(null, { subject: 'Other' }), await between],
    null,
  ],
  'of an authority that has expired': [
    async () => {
      const old = authority('Old', { validity: EXPIRED });
      return [await leafOf(old), await old];
    },
    /CERT_HAS_EXPIRED/,
  ],
  'of an authority that was signed again, with its expired form as well': [
    async () => {
      const { keys } = await between;
      const old = await authority('Between', { keys, validity: EXPIRED });
      return [await leafOf(between), old, await between];
    },
    null,
  ],
  'of a certificate that may sign none': [
    async () => {
      const server = leafOf(between, { subject: 'server.partner.test' });
      return [await leafOf(server), await server, await between];
    },
    /INVALID_CA|INVALID_PURPOSE/,
  ],
  'longer than its authority allows': [
    async () => {
      const last = authority('Last', { pathLength: 0 });
      const further = authority('Further', {}, last);
      return [await leafOf(further), await further, await last];
    },
    /PATH_LENGTH_EXCEEDED/,
  ],
  'for clients': [
    async () => [await leafOf(root, { uses: [x509.ExtendedKeyUsage.clientAuth] })],
    /INVALID_PURPOSE/,
  ],
  'with a wildcard': [
    async () => [await leafOf(root, { names: [{ type: 'dns', value: '*.partner.test' }] })],
    null,
  ],
  'with a wildcard one label too high': [
    async () => [await leafOf(root, { names: [{ type: 'dns', value: '*.test' }] })],
    /ALTNAME_INVALID/,
  ],
  'for its address': [
    async () => [await leafOf(root, { subject: 'Server', names: [{ type: 'ip', value: '127.0.0.1' }] })],
    /ALTNAME_INVALID/,
  ],
  'that names the host in its subject alone': [async () => [await leafOf(root, { names: [] })], null],
  'with a key on P-384': [async () => [await leafOf(root, { algorithm: P384 })], null],
  'with an RSA key of 2,048 bits': [async () => [await leafOf(root, { algorithm: rsa(2_048) })], null],
  'signed with SHA-1': [async () => [await leafOf(root, { hash: 'SHA-1' })], /MD_TOO_WEAK|UNSPECIFIED/],
};

test.each(Object.entries(CHAINS))('a certificate %s', async (_what, [chain, failure]) => {
  const certificates = await chain();
  const key = KeyObject.from(certificates[0].keys.privateKey).export({ type: 'pkcs8', format: 'pem' });
  const cert = certificates.map(({ pem }) => pem).join('');
  const { receiver, sender } = await served(
    (_request, response) => response.end(),
    // What is too weak for us is not too weak for such a server.
    { tls: { key, cert, ciphers: 'DEFAULT@SECLEVEL=0' } },
    { ca: (await root).pem },
  );
  const { outcome, detail } = await sender.send(post(receiver.url));
  expect([outcome.kind, detail]).toEqual(
    failure === null ? ['delivered', null] : ['failed', expect.stringMatching(failure)],
  );
});
