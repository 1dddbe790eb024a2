import { type KeyRing, parseKeyRing } from '../../db/endpoints/key-ring';
import { createPartner } from '../../db/catalogue/partners';
import { findEndpoint } from '../../db/endpoints/endpoints';
import { liveSecrets } from '../../db/endpoints/secrets';
import { ensureDemoEndpoints } from '../../dev/demo-webhooks';
import { openTestDatabase, type OpenTestDatabase } from '../support/database';
import { addEndpoint, newKeyRingText } from '../../testbed/notifications';

const partnerId = 'P100001';
const url = 'https://localhost:8445/webhooks';
const newRing = () => parseKeyRing(newKeyRingText());

let database: OpenTestDatabase;
let keyRing: KeyRing;

beforeEach(async () => {
  keyRing = newRing();
  database = await openTestDatabase({ poolSize: 2, statementTimeoutMs: 5_000 });
  await createPartner(database.db, { partnerId, name: 'Demo' });
});

afterEach(() => database.close());

async function endpoints() {
  const found = [
    await findEndpoint(database.db, partnerId, 'sandbox'),
    await findEndpoint(database.db, partnerId, 'live'),
  ];
  return found.map((endpoint) => endpoint && { id: endpoint.endpointId, url: endpoint.url });
}

/** Those of both environments, as a key ring opens them. */
async function secrets(ring = keyRing): Promise<string[]> {
  const sealed = await Promise.all(
    (await endpoints()).map((endpoint) => liveSecrets(database.db, endpoint?.id ?? '')),
  );
  return sealed.flat().map((one) => ring.open(one, one));
}

test('replaces secrets that a lost key ring had sealed', async () => {
  await ensureDemoEndpoints(database, { partnerId, url, keyRing });
  const other = newRing();
  await expect(secrets(other)).rejects.toThrow(/cannot be opened/);
  await ensureDemoEndpoints(database, { partnerId, url, keyRing: other });
  expect(await secrets(other)).toHaveLength(2);
});

test("leaves a person's own endpoint alone", async () => {
  const own = 'https://hooks.partner.example/finance';
  await addEndpoint(database, { partnerId, url: own, keyRing });
  await ensureDemoEndpoints(database, { partnerId, url, keyRing });
  expect((await endpoints()).map((endpoint) => endpoint?.url)).toEqual([own, url]);
});
