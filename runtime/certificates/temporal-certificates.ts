import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  isIssuedBy,
  daysLeft,
  keepAuthority,
  keepCertificate,
  readCertificate,
  writeAtomically,
  type CertificateFiles,
  type WantedCertificate,
} from './issue';

/** Each release runs the job. A certificate is renewed a year before its end, to be used in time. */
const LIFE = { days: 730, renewDays: 365 } as const;

/** The server is a client too, as its services call one another. The group of the console reads its files. */
const SETS: Readonly<Record<string, WantedCertificate>> = {
  server: { ...LIFE, names: [{ type: 'dns', value: 'temporal' }], uses: ['serverAuth', 'clientAuth'] },
  client: { ...LIFE, names: [{ type: 'dns', value: 'temporal-client' }], uses: ['clientAuth'] },
  console: {
    ...LIFE,
    names: [{ type: 'dns', value: 'temporal-console' }],
    uses: ['clientAuth'],
    mode: 0o640,
  },
};

/**
 * Makes the certificates for mutual TLS with Temporal, in the folders `authority`, `server`, `client` and
 * `console` below `root`. Each of the last three gets `cert.pem`, `key.pem` and its authority as
 * `ca.pem`. A certificate stays until it is due. Those of another authority (`brought`) never change.
 * @throws when others' certificates are in some folders only, are incomplete or have expired
 */
export async function keepTemporalCertificates(root: string, now: Date) {
  const authorityFiles = filesIn(join(root, 'authority'));
  const { cert: ours } = await readCertificate(authorityFiles);
  const isBrought = async (folder: string) => {
    const cert = await readFile(join(root, folder, 'cert.pem'), 'utf8').catch(() => '');
    return cert !== '' && !isOurs(cert, ours);
  };
  const folders = Object.keys(SETS);
  for (const folder of ['authority', ...folders])
    await mkdir(join(root, folder), { recursive: true, mode: 0o700 });
  const brought = (await Promise.all(folders.map(isBrought))).includes(true);
  if (!brought) {
    const authority = await keepAuthority(authorityFiles, 'Partner Finance Quote Service, Temporal', now);
    for (const [folder, wanted] of Object.entries(SETS)) {
      // This is written first, as a certificate without its authority looks like another authority's.
      await writeAtomically(join(root, folder, 'ca.pem'), authority.cert, 0o644);
      await keepCertificate(filesIn(join(root, folder)), authority, wanted, now);
    }
  }
  const all = [];
  for (const folder of folders)
    all.push({ folder, brought, daysLeft: await checkFolder(join(root, folder), now) });
  return all;
}

const filesIn = (folder: string): CertificateFiles => ({
  certFile: join(folder, 'cert.pem'),
  keyFile: join(folder, 'key.pem'),
});

/** @throws when the folder lacks a valid certificate, its key or an authority */
async function checkFolder(folder: string, now: Date): Promise<number> {
  const left = daysLeft(await readCertificate(filesIn(folder)), now);
  const authority = await readFile(join(folder, 'ca.pem'), 'utf8').catch(() => '');
  if (left === -Infinity || !authority.includes('BEGIN CERTIFICATE'))
    throw new Error(
      `${folder} must contain cert.pem, key.pem that belongs to it, and ca.pem. Bring all three folders, or empty them: then they are made.`,
    );
  if (left <= 0) throw new Error(`${join(folder, 'cert.pem')} has expired: replace it`);
  return Math.floor(left);
}

function isOurs(cert: string, authority: string): boolean {
  try {
    return isIssuedBy(cert, authority);
  } catch {
    return false;
  }
}
