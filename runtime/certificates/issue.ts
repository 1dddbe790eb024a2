import 'reflect-metadata';
import { randomBytes, webcrypto, X509Certificate as NodeCertificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto);

/** Elliptic: made in milliseconds, where RSA takes up to seconds. */
const KEYS = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;

export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Makes a certificate authority. Both key identifiers are there: strict verifiers (Python 3.13's default) ask for them. */
export async function createAuthority(commonName: string, validity: Validity): Promise<IssuedCertificate> {
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${commonName}`,
    ...validity,
    keys: keys,
    signingAlgorithm: SIGNING,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: `${cert.toString('pem')}\n`, key: await keyPem(keys.privateKey) };
}

/** What a certificate may be used for: to prove who the server is, or the client. */
export type CertificateUse = 'serverAuth' | 'clientAuth';

/** Issues a certificate for host names and addresses: of a server, unless `uses` says otherwise. */
export async function issueCertificate(
  authority: IssuedCertificate,
  names: readonly { readonly type: 'dns' | 'ip'; readonly value: string }[],
  validity: Validity,
  uses: readonly CertificateUse[] = ['serverAuth'],
): Promise<IssuedCertificate> {
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const issuer = new x509.X509Certificate(authority.cert);
  const cert = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `CN=${names[0]?.value ?? 'localhost'}`,
    issuer: issuer.subject,
    ...validity,
    publicKey: keys.publicKey,
    signingKey: await signingKey(authority.key),
    signingAlgorithm: SIGNING,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(uses.map((use) => x509.ExtendedKeyUsage[use])),
      new x509.SubjectAlternativeNameExtension([...names]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { cert: `${cert.toString('pem')}\n`, key: await keyPem(keys.privateKey) };
}

/** Whether one certificate was signed by the other. */
export function isIssuedBy(cert: string, authority: string): boolean {
  return new NodeCertificate(cert).verify(new NodeCertificate(authority).publicKey);
}

/** Positive, as RFC 5280 wants it. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64');
  const lines = der.match(/.{1,64}/g)?.join('\n') ?? '';
  return `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`;
}

function signingKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  return webcrypto.subtle.importKey('pkcs8', der, KEYS, false, ['sign']);
}
