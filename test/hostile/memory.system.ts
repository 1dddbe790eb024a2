import { useApi } from '../support/api';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { exchange, expectBad, pause, quoteBytes } from './raw';

const MEBIBYTE = 1024 ** 2;

let api: ApiProcess;
// Before the database goes.
afterAll(() => api?.close());
/** Issues the key. */
const admin = useApi();
beforeAll(async () => {
  api = await startApiProcess({ databaseUrl: admin.databaseUrl });
});

const residentBytes = () => api.metric('process_resident_memory_bytes');

/** Five clients at a time, each with 10 MiB: announced, in chunks, in headers. @returns the most memory seen. */
async function attack(rounds: number): Promise<number> {
  const blank = Buffer.alloc(10 * MEBIBYTE, ' ');
  const chunk = `100000\r\n${' '.repeat(MEBIBYTE)}\r\n`;
  const announced = quoteBytes(admin, { body: blank });
  const chunked = Buffer.concat([
    quoteBytes(admin, { body: '', without: ['content-length'], headers: ['Transfer-Encoding: chunked'] }),
    Buffer.from(`${chunk.repeat(10)}0\r\n\r\n`),
  ]);
  const headers = quoteBytes(admin, { headers: [`X-Big: ${'x'.repeat(10 * MEBIBYTE)}`] });
  let most = 0;
  for (let round = 0; round < rounds; round += 1) {
    const five = [announced, chunked, headers, announced, chunked];
    const exchanges = await Promise.all(five.map((bytes) => exchange(api, bytes, { patienceMs: 15_000 })));
    for (const [at, { answers }] of exchanges.entries()) {
      // Where a head is too large the reset that follows the answer may overtake it on its way.
      if (at !== 2 || answers.length > 0) expectBad(answers[0]);
    }
    most = Math.max(most, await residentBytes());
  }
  return most;
}

test('300 requests of 10 MiB leave memory flat', async () => {
  // What the process needs to do this at all, buffers and compiled code, it has after these.
  await attack(15);
  const before = await residentBytes();
  const most = await attack(60);
  await pause(1_000);
  const after = await residentBytes();
  const mebibytes = [before, most, after].map((bytes) => Math.round(bytes / MEBIBYTE));
  console.log(`resident MiB before, at most and after 300 × 10 MiB: ${mebibytes.join(', ')}`);
  // One body in twenty kept would be 150 MiB.
  expect(most - before).toBeLessThan(100 * MEBIBYTE);
  expect(after - before).toBeLessThan(50 * MEBIBYTE);
});
