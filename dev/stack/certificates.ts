import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { keepAuthority, keepCertificate } from '../../runtime/certificates/issue';
import type { DevelopmentTls } from './types';

const OWN = {
  names: [
    { type: 'dns', value: 'localhost' },
    { type: 'ip', value: '127.0.0.1' },
    { type: 'ip', value: '::1' },
  ],
  /** Clients refuse server certificates that live longer than 398 days. */
  days: 365,
  renewDays: 30,
} as const;

/** A development authority and a certificate for this machine's own names, made once and renewed when due. */
export async function ensureCertificates(directory: string, now: Date): Promise<DevelopmentTls> {
  await mkdir(directory, { recursive: true });
  const file = (name: string) => join(directory, name);
  const tls = { caFile: file('ca.pem'), certFile: file('cert.pem'), keyFile: file('key.pem') };
  const authority = await keepAuthority(
    { certFile: tls.caFile, keyFile: file('ca-key.pem') },
    'Partner Finance Quote Service development',
    now,
  );
  await keepCertificate(tls, authority, OWN, now);
  return tls;
}
