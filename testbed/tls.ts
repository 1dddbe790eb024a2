import { createAuthority, issueCertificate } from '../runtime/certificates/issue';

export interface TestTls {
  /** Authority to trust, PEM. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const LOOPBACK = [
  { type: 'dns', value: 'localhost' },
  { type: 'ip', value: '127.0.0.1' },
] as const;

const DAY_MS = 86_400_000;
/** From a day ago until tomorrow. */
export const VALID = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };

/** A certificate for loopback, from an authority of its own. */
export async function createTestTls(
  names: Parameters<typeof issueCertificate>[1] = LOOPBACK,
): Promise<TestTls> {
  const authority = await createAuthority('Test authority', VALID);
  return { ca: authority.cert, ...(await issueCertificate(authority, names, VALID)) };
}
