import type { Database } from '../../db/postgres/connect';
import { generateWebhookSecret } from '../../db/endpoints/webhook-secret';
import type { KeyRing } from '../../db/endpoints/key-ring';
import { createPartner } from '../../db/catalogue/partners';
import { registerEndpoint } from '../../db/endpoints/endpoints';

/** Makes a partner with a live endpoint for each address. @returns their ids. */
export async function addPartners(
  { db }: Database,
  keyRing: KeyRing,
  urls: readonly string[],
): Promise<string[]> {
  const partners: string[] = [];
  for (const url of urls) {
    const { partnerId } = await createPartner(db, { partnerId: null, name: 'Bench' });
    const secret = generateWebhookSecret();
    await db.transaction((tx) =>
      registerEndpoint(tx, {
        partnerId,
        environment: 'live',
        url,
        replace: false,
        secret,
        keyRing,
      }),
    );
    partners.push(partnerId);
  }
  return partners;
}
