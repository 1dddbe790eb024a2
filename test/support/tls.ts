import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';

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

/** A certificate for loopback, from an authority of its own. */
export async function createTestTls(
  names: Parameters<typeof issueCertificate>[1] = LOOPBACK,
): Promise<TestTls> {
  const day = 86_400_000;
  const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };
  const authority = await createAuthority('Test authority', validity);
  return { ca: authority.cert, ...(await issueCertificate(authority, names, validity)) };
}
