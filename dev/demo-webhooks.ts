import type { Tenant } from '../domain/tenant';
import type { Database, DbOrTransaction } from '../db/postgres/connect';
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
      if (old?.url === url && (await openSecrets(tx, old.endpointId, keyRing)).length > 0) return;
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
      if (!(await opensKeyPairs(tx, owner, keyRing)))
        await rotateKeyPair(tx, owner, { overlapSeconds: 0, keyRing });
    });
  }
}

/** Those that this key ring opens: a lost key ring makes the others worthless. */
async function openSecrets(
  db: DbOrTransaction,
  endpointId: string,
  keyRing: KeyRing,
): Promise<readonly string[]> {
  return opened(await liveSecrets(db, endpointId), keyRing);
}

/** Whether all key pairs open: what is signed with them is not sent otherwise. */
async function opensKeyPairs(db: DbOrTransaction, owner: Tenant, keyRing: KeyRing): Promise<boolean> {
  const sealed = await liveKeyPairs(db, owner);
  return opened(sealed, keyRing).length === sealed.length;
}

function opened(sealed: readonly (Sealed & SealedFor)[], keyRing: KeyRing): readonly string[] {
  return sealed.flatMap((one) => {
    try {
      return [keyRing.open(one, one)];
    } catch {
      return [];
    }
  });
}
