import { startTestApi, type TestApi } from '../support/api';
import { addMerchant } from '../support/merchants';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';

const MERCHANT = 'M7777001';

let api: TestApi;
/** A second API process's worth: its change feed can be frozen, while its pool still reaches Postgres. */
let other: TestApi;
let proxy: TcpProxy;

beforeAll(async () => {
  api = await startTestApi();
  const through = new URL(api.databaseUrl);
  proxy = await startTcpProxy({ port: Number(through.port) });
  through.port = String(proxy.port);
  other = await startTestApi({
    databaseUrl: api.databaseUrl,
    environment: { DATABASE_LISTEN_URL: through.href },
    keys: api.keys,
  });
  await addMerchant(api.database, MERCHANT, {
    products: [{ creditProduct: 'Classic', aprBasisPoints: 990 }],
  });
});
afterAll(async () => {
  await other?.close();
  await api.close();
  await proxy.close();
});

async function apr(of: TestApi): Promise<string> {
  const { body } = await of.quote({ merchant_id: MERCHANT });
  return body.data.products[0].apr;
}

/** Milliseconds until the last call that is answered with the old APR is made, asking without pause; it must not come back. */
async function timeTo(expected: string, of: TestApi): Promise<number> {
  const start = performance.now();
  let taken = 0;
  for (let made = 0; (await apr(of)) !== expected; made = performance.now() - start) {
    taken = made;
    if (taken > 5_000) throw new Error(`${expected} is not quoted after 5 s`);
  }
  for (let again = 0; again < 50; again += 1) expect(await apr(of)).toBe(expected);
  return taken;
}

test('a changed price is quoted by every process within a second, though one hears nothing any more', async () => {
  expect([await apr(api), await apr(other)]).toEqual(['9.9% Fixed', '9.9% Fixed']);
  proxy.freeze();
  await api.database.sql`update product_versions set apr_basis_points = 1490 where product_id in
    (select product_id from products where merchant_id = ${MERCHANT})`;
  const [mine, theirs] = await Promise.all([timeTo('14.9% Fixed', api), timeTo('14.9% Fixed', other)]);
  expect(mine).toBeLessThan(1_000);
  expect(theirs).toBeLessThan(1_000);
  proxy.unfreeze();
  expect(await apr(other)).toBe('14.9% Fixed');
});
