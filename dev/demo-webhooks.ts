import type { Database } from '../db/postgres/connect';
import type { KeyRing, Sealed, SealedFor } from '../db/endpoints/key-ring';
import type { KeyEnvironment } from '../db/keys';
import { appendChange } from '../db/audit/change-log';
import { findEndpoint, registerEndpoint } from '../db/endpoints/endpoints';
import { liveSecrets, generateWebhookSecret } from '../db/endpoints/secrets';
import { liveKeyPairs, rotateKeyPair } from '../db/endpoints/key-pairs';
import { stackPorts } from './ports';
import type { Config } from '../runtime/config/config';

const ACTOR = 'seed';
const ENVIRONMENTS: readonly KeyEnvironment[] = ['sandbox', 'live'];
/** What a start on another port or with another key ring left: to be replaced, where a person's own endpoint is not. */
const OURS = /^https:\/\/localhost:\d+\/webhooks$/;

/** The settings with what lets the embedded worker reach the receiver on this machine, and nothing else private. */
export function withDemoReceiver(config: Config, facts: { webhookKeys: string; caFile: string }): Config {
  return {
    ...config,
    ENVIRONMENT: 'development',
    WEBHOOK_KEYS: facts.webhookKeys,
    WEBHOOK_LOCAL_TARGETS: [
      ...config.WEBHOOK_LOCAL_TARGETS,
      { name: 'localhost', port: stackPorts(config.STACK_PORT).shop },
    ],
    WEBHOOK_CA_FILE: config.WEBHOOK_CA_FILE ?? facts.caFile,
  };
}

/** Sees to it that both environments of the demo partner send to the receiver, with secrets that the key ring opens. */
export async function ensureDemoEndpoints(
  { db }: Pick<Database, 'db'>,
  wanted: { readonly partnerId: string; readonly url: string; readonly keyRing: KeyRing },
): Promise<void> {
  const { partnerId, url, keyRing } = wanted;
  for (const environment of ENVIRONMENTS) {
    await db.transaction(async (tx) => {
      const old = await findEndpoint(tx, partnerId, environment);
      if (old !== null && !OURS.test(old.url)) return;
      const secrets = old === null ? [] : await liveSecrets(tx, old.endpointId);
      if (old?.url === url && secrets.some((one) => opens(keyRing, one))) return;
      const { endpoint } = await registerEndpoint(tx, {
        partnerId,
        environment,
        url,
        replace: true,
        secret: generateWebhookSecret(),
        keyRing,
      });
      const details = { partner_id: partnerId, environment, url };
      await appendChange(tx, {
        actor: ACTOR,
        action: 'webhooks.create',
        subject: endpoint.endpointId,
        details,
      });
      const owner = { partnerId, environment };
      // What is signed with a key pair that does not open is not sent at all.
      if (!(await liveKeyPairs(tx, owner)).every((one) => opens(keyRing, one)))
        await rotateKeyPair(tx, owner, { overlapSeconds: 0, keyRing });
    });
  }
}

/** A lost key ring makes what it has sealed worthless. */
function opens(keyRing: KeyRing, sealed: Sealed & SealedFor): boolean {
  try {
    return keyRing.open(sealed, sealed) !== '';
  } catch {
    return false;
  }
}
