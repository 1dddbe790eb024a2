import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import {
  createAuthority,
  isIssuedBy,
  issueCertificate,
  type CertificateUse,
  type IssuedCertificate,
  type Validity,
} from './issue';

const DAY_MS = 86_400_000;
/** Long, because an authority is put into trust stores. */
const AUTHORITY_DAYS = 3_650;
const RENEW_AUTHORITY_DAYS = 30;

/** Where a certificate and its key are, PEM. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface WantedCertificate {
  readonly names: Parameters<typeof issueCertificate>[1];
  readonly uses?: readonly CertificateUse[];
  readonly days: number;
  /** A certificate that has no more days left than this is renewed. */
  readonly renewDays: number;
  /** Of both files, when others than their owner read them. */
  readonly mode?: number;
}

/** The authority in these files. It is made when it is missing, half-written or about to expire. */
export async function keepAuthority(
  files: CertificateFiles,
  commonName: string,
  now: Date,
): Promise<IssuedCertificate> {
  const old = await readCertificate(files);
  if (daysLeft(old, now) > RENEW_AUTHORITY_DAYS) return old;
  const made = await createAuthority(commonName, validFor(AUTHORITY_DAYS, now));
  await writeAtomically(files.keyFile, made.key);
  await writeAtomically(files.certFile, made.cert);
  return made;
}

/** Leaves the certificate in these files, or issues it anew: when it is missing, another authority's or due. */
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

/** A reader sees the old content or the new, and only the owner reads it unless `mode` says otherwise. */
export async function writeAtomically(file: string, content: string, mode = 0o600): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, content, { mode });
  await rename(draft, file);
}

/** Both files; what is missing is empty. */
export async function readCertificate({ certFile, keyFile }: CertificateFiles): Promise<IssuedCertificate> {
  const [cert = '', key = ''] = await Promise.all(
    [certFile, keyFile].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  return { cert, key };
}

/** How many days a certificate is valid from now on. Minus infinity: it is missing, half-written, or the key is another one's. */
export function daysLeft({ cert, key }: IssuedCertificate, now: Date): number {
  try {
    const parsed = new X509Certificate(cert);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) return -Infinity;
    return (new Date(parsed.validTo).getTime() - now.getTime()) / DAY_MS;
  } catch {
    return -Infinity;
  }
}

/** A day back, for clients whose clock is behind. */
function validFor(days: number, now: Date): Validity {
  return {
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter: new Date(now.getTime() + (days - 1) * DAY_MS),
  };
}
