import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { keepTemporalCertificates } from '../../runtime/certificates/temporal-certificates';
import { certificateEnds } from '../../runtime/temporal/temporal-target';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

const DAY_MS = 86_400_000;
const NOW = new Date('2026-11-22T10:00:00Z');
const FOLDERS = ['server', 'client', 'console'];
let directory: string;

beforeEach(async () => {
  directory = await temporaryDirectory('temporal-certificates');
});
afterEach(() => removeDirectory(directory));

const at = (days: number) => new Date(NOW.getTime() + days * DAY_MS);
const read = (folder: string, name: string) => readFile(join(directory, folder, name), 'utf8');
const everything = () =>
  Promise.all(
    FOLDERS.flatMap((folder) => ['cert.pem', 'key.pem', 'ca.pem'].map((name) => read(folder, name))),
  );

test('makes an authority and a certificate for each, whose keys only their users may read', async () => {
  const made = await keepTemporalCertificates(directory, NOW);
  expect(made).toEqual(FOLDERS.map((folder) => ({ folder, brought: false, daysLeft: 729 })));
  for (const folder of FOLDERS) {
    const certificate = new X509Certificate(await read(folder, 'cert.pem'));
    const authority = new X509Certificate(await read(folder, 'ca.pem'));
    expect(certificate.verify(authority.publicKey)).toBe(true);
    // Only the server may pose as a server: serverAuth.
    expect(certificate.keyUsage.includes('1.3.6.1.5.5.7.3.1')).toBe(folder === 'server');
    expect(certificate.keyUsage).toContain('1.3.6.1.5.5.7.3.2');
    const { mode } = await stat(join(directory, folder, 'key.pem'));
    expect(mode & 0o777).toBe(folder === 'console' ? 0o640 : 0o600);
  }
  expect((await stat(join(directory, 'authority/key.pem'))).mode & 0o777).toBe(0o600);
  expect((await stat(join(directory, 'authority'))).mode & 0o777).toBe(0o700);
});

test('changes nothing until a year is left, and then renews under the same authority', async () => {
  await keepTemporalCertificates(directory, NOW);
  const first = await everything();
  await keepTemporalCertificates(directory, at(360));
  expect(await everything()).toEqual(first);
  const renewed = await keepTemporalCertificates(directory, at(400));
  expect(renewed.map(({ daysLeft }) => daysLeft)).toEqual([729, 729, 729]);
  expect(await read('client', 'ca.pem')).toBe(first[5]);
  expect(await read('client', 'cert.pem')).not.toBe(first[3]);
});

test('makes again what was lost or is half-written', async () => {
  await keepTemporalCertificates(directory, NOW);
  await rm(join(directory, 'client/key.pem'));
  await writeFile(join(directory, 'server/key.pem'), 'half');
  expect(await keepTemporalCertificates(directory, NOW)).toHaveLength(3);
  expect(await read('client', 'key.pem')).toContain('PRIVATE KEY');
});

async function bring(folders: readonly string[], days: number): Promise<void> {
  const validity = { notBefore: at(-1_000), notAfter: at(days) };
  const authority = await createAuthority('A company', validity);
  for (const folder of folders) {
    const { cert, key } = await issueCertificate(authority, [{ type: 'dns', value: 'temporal' }], validity);
    await mkdir(join(directory, folder), { recursive: true });
    await writeFile(join(directory, folder, 'cert.pem'), cert);
    await writeFile(join(directory, folder, 'key.pem'), key);
    await writeFile(join(directory, folder, 'ca.pem'), authority.cert);
  }
}

test.each([
  [1, 8],
  [90, 720],
  [730, 720],
])('of a life of %d days its last %d hours are said to be its end', async (days, hours) => {
  const validity = { notBefore: NOW, notAfter: at(days) };
  const authority = await createAuthority('A company', validity);
  const { cert, key } = await issueCertificate(authority, [{ type: 'dns', value: 'temporal' }], validity);
  const clientCertPair = { crt: Buffer.from(cert), key: Buffer.from(key) };
  const target = { namespace: 'default', connection: { address: 'temporal:7233', tls: { clientCertPair } } };
  const hourBefore = (left: number) => certificateEnds(target, at(days).getTime() - left * 3_600_000);
  expect(hourBefore(hours + 1)).toBeNull();
  expect(hourBefore(hours - 1)).toMatch(/ends at 20\d\d-/);
  const without = { ...target, connection: { address: 'temporal:7233' } };
  expect(certificateEnds(without, NOW.getTime())).toBeNull();
});

test('never touches what was brought, even when it is due', async () => {
  await bring(FOLDERS, 10);
  const before = await everything();
  const found = await keepTemporalCertificates(directory, NOW);
  expect(found).toEqual(FOLDERS.map((folder) => ({ folder, brought: true, daysLeft: 10 })));
  expect(await everything()).toEqual(before);
});

test('refuses an incomplete or expired set that was brought, and says which file', async () => {
  await bring(['client'], 10);
  await expect(keepTemporalCertificates(directory, NOW)).rejects.toThrow(
    /server must contain cert\.pem, key\.pem/,
  );
  await bring(FOLDERS, -1);
  await expect(keepTemporalCertificates(directory, NOW)).rejects.toThrow(/server\/cert\.pem has expired/);
});
