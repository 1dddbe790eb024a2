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

/**
 * Each release runs the job, so a certificate that is renewed a year before its end has a year in which its process is
 * started again.
 */
const LIFE = { days: 730, renewDays: 365 } as const;

/**
 * Who has a certificate. The server's serves as a client's too, because its services call one another. The key of the
 * console is readable for its group: the image of Temporal's web page has a user of its own.
 */
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

/** What became of the certificates of one folder. */
interface TemporalCertificate {
  /** Name of its folder. */
  readonly folder: string;
  /** Somebody else issued it: it is left as it is. */
  readonly brought: boolean;
  /** Whole days until it expires. */
  readonly daysLeft: number;
}

/**
 * Makes what mutual TLS with Temporal needs, in the folders `authority`, `server`, `client` and `console` of the given
 * one, and those that are missing. Each of the last three gets `cert.pem`, `key.pem` and, as `ca.pem`, the authority that it
 * trusts. What is there stays until it is due. Certificates that our authority did not issue are never touched.
 * @throws when certificates were brought for some of the folders only, or what was brought is incomplete or has expired.
 */
export async function keepTemporalCertificates(root: string, now: Date): Promise<TemporalCertificate[]> {
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
      // First: a certificate without its authority would be taken for one that was brought.
      await writeAtomically(join(root, folder, 'ca.pem'), authority.cert, 0o644);
      await keepCertificate(filesIn(join(root, folder)), authority, wanted, now);
    }
  }
  const all: TemporalCertificate[] = [];
  for (const folder of folders)
    all.push({ folder, brought, daysLeft: await checkFolder(join(root, folder), now) });
  return all;
}

const filesIn = (folder: string): CertificateFiles => ({
  certFile: join(folder, 'cert.pem'),
  keyFile: join(folder, 'key.pem'),
});

/** @throws when the folder does not contain a valid certificate with its key, and an authority. */
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

/** Whether our authority issued it; also when ours is missing or cannot be read, and it did not. */
function isOurs(cert: string, authority: string): boolean {
  try {
    return isIssuedBy(cert, authority);
  } catch {
    return false;
  }
}
