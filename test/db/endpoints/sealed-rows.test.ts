import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { faultOfKeyRing } from '../../../db/endpoints/sealed-rows';
import { addEndpoint, newKeyRingText, newPartner } from '../../../testbed/notifications';
import { useDatabase } from '../../support/database';

const database = useDatabase();

test('a key ring that opens every secret but not the private keys cannot sign', async () => {
  const [keys, next] = [newKeyRingText(), newKeyRingText().replace('test:', 'next:')];
  const fault = (ring: string) => faultOfKeyRing(database.sql, parseKeyRing(ring));
  const { partnerId } = await newPartner(database, keys);
  // The partner keeps its key pair, and gets a secret under the new key.
  await addEndpoint(database, { partnerId, keyRing: `${next},${keys}` });
  expect(await fault(`${next},${keys}`)).toBeNull();
  expect(await fault(keys)).toMatch(/no key with the id next$/);
  expect(await fault(next)).toMatch(/no key with the id test$/);
  // Nothing is signed for partners without an active endpoint.
  await database.sql`update webhook_endpoints set state = 'removed'`;
  expect(await fault(next)).toBeNull();
});
