import type { Database } from '../../db/connect';
import { generateWebhookSecret } from '../../db/webhook-secret';
import type { KeyRing } from '../../db/key-ring';
import { createPartner } from '../../db/queries/partners';
import { registerEndpoint } from '../../db/queries/webhook-endpoints';

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
        seal: (place) => keyRing.seal(secret, place),
      }),
    );
    partners.push(partnerId);
  }
  return partners;
}
