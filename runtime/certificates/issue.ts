import 'reflect-metadata';
import { createPrivateKey, KeyObject, randomBytes, webcrypto, X509Certificate } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto);

/** Elliptic keys are made in milliseconds, RSA keys in up to seconds. */
const KEYS = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;

export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
}

interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Makes a certificate authority with both key identifiers, which strict verifiers require. */
export async function createAuthority(commonName: string, validity: Validity): Promise<IssuedCertificate> {
  const keys = await webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${commonName}`,
    ...validity,
    keys,
    signingAlgorithm: SIGNING,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return toPem(cert, keys);
}

type CertificateUse = 'serverAuth' | 'clientAuth';

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
  return toPem(cert, keys);
}

export function isIssuedBy(cert: string, authority: string): boolean {
  return new X509Certificate(cert).verify(new X509Certificate(authority).publicKey);
}

/** RFC 5280 requires a positive number. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

function toPem(cert: x509.X509Certificate, { privateKey }: webcrypto.CryptoKeyPair): IssuedCertificate {
  const key = KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
  return { cert: `${cert.toString('pem')}\n`, key };
}

function signingKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return webcrypto.subtle.importKey('pkcs8', der, KEYS, false, ['sign']);
}

const DAY_MS = 86_400_000;
/** Long, because people put an authority into trust stores. */
const AUTHORITY_DAYS = 3_650;
const RENEW_AUTHORITY_DAYS = 30;

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface WantedCertificate {
  readonly names: Parameters<typeof issueCertificate>[1];
  readonly uses?: readonly CertificateUse[];
  readonly days: number;
  readonly renewDays: number;
  readonly mode?: number;
}

/** The authority in these files, made when it is missing, incomplete or about to expire. */
export async function keepAuthority(files: CertificateFiles, commonName: string, now: Date) {
  const old = await readCertificate(files);
  if (daysLeft(old, now) > RENEW_AUTHORITY_DAYS) return old;
  const made = await createAuthority(commonName, validFor(AUTHORITY_DAYS, now));
  await writeAtomically(files.keyFile, made.key);
  await writeAtomically(files.certFile, made.cert);
  return made;
}

/** Issues the certificate in these files again when it is missing, of another authority, or due. */
export async function keepCertificate(
  files: CertificateFiles,
  authority: IssuedCertificate,
  wanted: WantedCertificate,
  now: Date,
): Promise<void> {
  const old = await readCertificate(files);
  if (daysLeft(old, now) > wanted.renewDays && isIssuedBy(old.cert, authority.cert)) return;
  const made = await issueCertificate(authority, wanted.names, validFor(wanted.days, now), wanted.uses);
  await writeAtomically(files.keyFile, made.key, wanted.mode);
  await writeAtomically(files.certFile, made.cert, wanted.mode);
}

/** Replaces a whole file. Only its owner can read it unless `mode` says otherwise. */
export async function writeAtomically(file: string, content: string, mode = 0o600): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, content, { mode });
  await rename(draft, file);
}

export async function readCertificate({ certFile, keyFile }: CertificateFiles): Promise<IssuedCertificate> {
  const [cert = '', key = ''] = await Promise.all(
    [certFile, keyFile].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  return { cert, key };
}

/** Days until the certificate expires; minus infinity when it is missing, incomplete or not the key's. */
export function daysLeft({ cert, key }: IssuedCertificate, now: Date): number {
  try {
    const parsed = new X509Certificate(cert);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) return -Infinity;
    return (new Date(parsed.validTo).getTime() - now.getTime()) / DAY_MS;
  } catch {
    return -Infinity;
  }
}

/** Valid from a day ago, for clients whose clock is slow. */
function validFor(days: number, now: Date): Validity {
  return {
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter: new Date(now.getTime() + (days - 1) * DAY_MS),
  };
}
