import { generate } from 'selfsigned';

export interface TestTls {
  readonly cert: string;
  readonly key: string;
}

/** A certificate for loopback, its own authority. */
export async function createTestTls(): Promise<TestTls> {
  const pems = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  });
  return { cert: pems.cert, key: pems.private };
}
