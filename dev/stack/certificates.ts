import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, isIssuedBy, issueCertificate, type Validity } from '../tls/issue';
import { writeAtomically } from './files';
import type { DevelopmentTls } from './types';

const DAY_MS = 86_400_000;
/** Long, because people put it into trust stores. */
const CA_DAYS = 3_650;
/** Clients refuse server certificates that live longer than 398 days. */
const LEAF_DAYS = 365;
const RENEW_DAYS = 30;

const OWN_NAMES = [
  { type: 'dns', value: 'localhost' },
  { type: 'ip', value: '127.0.0.1' },
  { type: 'ip', value: '::1' },
] as const;

/** A development authority and a certificate for this machine's own names, made once and renewed when due. */
export async function ensureCertificates(directory: string, now: Date): Promise<DevelopmentTls> {
  await mkdir(directory, { recursive: true });
  const file = (name: string) => join(directory, name);
  const tls = { caFile: file('ca.pem'), certFile: file('cert.pem'), keyFile: file('key.pem') };
  const caKeyFile = file('ca-key.pem');
  const old = await Promise.all([tls.caFile, caKeyFile, tls.certFile, tls.keyFile].map(readOrEmpty));
  let [ca = '', caKey = ''] = old;
  const [, , leaf = '', leafKey = ''] = old;

  if (!isUsable(ca, caKey, now)) {
    const made = await createAuthority('Partner Finance Quote Service development', validFor(CA_DAYS, now));
    [ca, caKey] = [made.cert, made.key];
    await writeAtomically(caKeyFile, caKey, 0o600);
    await writeAtomically(tls.caFile, ca, 0o644);
  }
  if (!isUsable(leaf, leafKey, now) || !isIssuedBy(leaf, ca)) {
    const made = await issueCertificate({ cert: ca, key: caKey }, OWN_NAMES, validFor(LEAF_DAYS, now));
    await writeAtomically(tls.keyFile, made.key, 0o600);
    await writeAtomically(tls.certFile, made.cert, 0o644);
  }
  return tls;
}

/** A day back, for clients whose clock is behind. */
function validFor(days: number, now: Date): Validity {
  return {
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter: new Date(now.getTime() + (days - 1) * DAY_MS),
  };
}

/** Whether certificate and key belong together and live for a while; half-written and missing ones do not. */
function isUsable(certificate: string, key: string, now: Date): boolean {
  try {
    const parsed = new X509Certificate(certificate);
    const leftMs = new Date(parsed.validTo).getTime() - now.getTime();
    return parsed.checkPrivateKey(createPrivateKey(key)) && leftMs > RENEW_DAYS * DAY_MS;
  } catch {
    return false;
  }
}

async function readOrEmpty(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
