import type { Command } from 'commander';
import { existingEndpoint, findEndpoint, type WebhookEndpoint } from '../db/endpoints/endpoints';
import { listKeyPairs, rotateKeyPair, type KeyPairSummary } from '../db/endpoints/key-pairs';
import { generateWebhookSecret, listSecrets, rotateSecret } from '../db/endpoints/secrets';
import type { SecretSummary } from '../db/endpoints/secrets';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { environmentOption, overlapOption } from './arguments';
import { changeAndLog, group, handle, type Call, type OpsDeps, type Owner } from './call';
import { idOf } from './ids';
import { listed, shownOnce, snakeCased } from './output';

const SECRET_EXAMPLES = `
  ops webhooks secrets list whe_01K…
  ops webhooks secrets rotate whe_01K…                 old and new sign for 24 hours
  ops webhooks secrets rotate whe_01K… --overlap 0     it leaked: the old ones end now`;

const KEY_EXAMPLES = `
  ops webhook-keys list --partner P100001
  ops webhook-keys rotate --partner P100001 --environment live                 old and new sign for 24 hours
  ops webhook-keys rotate --partner P100001 --environment live --overlap 0     it leaked: the old ones end now`;

export function addWebhookSecretCommands(webhooks: Command, deps: OpsDeps): void {
  const secrets = group(
    webhooks,
    'secrets',
    'Signing secrets of endpoints. Each delivery carries a signature for every live one.',
    SECRET_EXAMPLES,
  );

  const rotate = endpointArgument(secrets.command('rotate'))
    .description('Add a secret, shown once; the present ones sign on for the overlap.')
    .addOption(overlapOption('the present ones sign on'));
  handle<{ overlap: number }>(rotate, deps, async (call, named) => {
    const { overlap: overlapSeconds } = call.options;
    const keyRing = deps.keyRing();
    const secret = generateWebhookSecret();
    const { all, ...ids } = await changeAndLog(call, 'webhooks.secrets.rotate', async (tx, log) => {
      const { endpointId, partnerId } = await namedEndpoint(tx, call, named);
      const seal = (place: { endpointId: string; secretId: string }) => keyRing.seal(secret, place);
      const { secretId } = await rotateSecret(tx, endpointId, { overlapSeconds, seal });
      await log(endpointId, snakeCased({ partnerId, secretId, overlapSeconds }));
      return { endpointId, secretId, all: await listSecrets(tx, endpointId) };
    });
    const live = all.filter((one) => one.live);
    const said = `Added secret ${ids.secretId} to ${ids.endpointId}. ${overlapText(live)}`;
    return shownOnce('secret', secret, said, { ...snakeCased(ids), live: live.map(secretView) });
  });

  const list = endpointArgument(secrets.command('list')).description('Secrets by id, never the secrets.');
  handle(list, deps, async (call, named) => {
    const { endpointId } = await namedEndpoint(call.db, call, named);
    return secretTable(await listSecrets(call.db, endpointId));
  });
}

export function addWebhookKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = group(
    program,
    'webhook-keys',
    'Key pairs that deliveries are also signed with. Partners read the public keys (GET /v1/webhook-keys).',
    KEY_EXAMPLES,
  );

  const list = keys
    .command('list')
    .description('Key pairs with their public keys, those that have ended too.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'));
  handle(list, deps, async ({ db, options: { partner: partnerId, environment } }) =>
    listed(await listKeyPairs(db, { partnerId, environment }), keyPairView, {
      key: 'webhook_key_id',
      partner: 'partner_id',
      environment: 'environment',
      signs: 'signs',
      until: 'expires_at',
      created: 'created_at',
      'sealed with': 'sealed_with',
      'public key': 'public_key',
    }),
  );

  const rotate = keys
    .command('rotate')
    .description('Add a key pair; deliveries are signed with the present ones too for the overlap.')
    .requiredOption('--partner <partner>', 'whose', idOf('partner'))
    .addOption(environmentOption('of which environment').makeOptionMandatory())
    .addOption(overlapOption('the present ones sign on'));
  handle<Owner & { overlap: number }>(rotate, deps, async (call) => {
    const { partner: partnerId, environment, overlap: overlapSeconds } = call.options;
    const keyRing = deps.keyRing();
    const { live, ...added } = await changeAndLog(call, 'webhook-keys.rotate', async (tx, log) => {
      const done = await rotateKeyPair(tx, { partnerId, environment }, { overlapSeconds, keyRing });
      await log(done.keyPairId, snakeCased({ partnerId, environment, overlapSeconds }));
      return done;
    });
    const { keyPairId, publicKey } = added;
    return {
      json: {
        webhook_key_id: keyPairId,
        ...snakeCased({ partnerId, environment, publicKey }),
        live: live.map((one) => ({ webhook_key_id: one.keyPairId, expires_at: one.expiresAt })),
      },
      text:
        `Added key pair ${keyPairId} to the ${environment} environment of ${partnerId}. ${overlapText(live)}\n` +
        `Its public key, which the partner reads at GET /v1/webhook-keys: ${publicKey}`,
    };
  });
}

const keyPairView = (pair: KeyPairSummary) => ({
  webhook_key_id: pair.keyPairId,
  partner_id: pair.partnerId,
  environment: pair.environment,
  public_key: pair.publicKey,
  signs: pair.live,
  created_at: pair.createdAt,
  expires_at: pair.expiresAt,
  sealed_with: pair.keyId,
});

function overlapText(live: readonly { readonly expiresAt: Date | null }[]): string {
  const last = Math.max(...live.map(({ expiresAt }) => expiresAt?.getTime() ?? 0));
  return last === 0 ? 'It signs alone.' : `Older ones sign on until ${new Date(last).toISOString()}.`;
}

/** Field by field, so that no secret is ever shown by accident. */
const secretView = (secret: SecretSummary) => ({
  secret_id: secret.secretId,
  sealed_with: secret.keyId,
  signs: secret.live,
  created_at: secret.createdAt,
  expires_at: secret.expiresAt,
});

export const secretTable = (secrets: readonly SecretSummary[]) =>
  listed(secrets, secretView, {
    secret: 'secret_id',
    signs: 'signs',
    until: 'expires_at',
    created: 'created_at',
    'sealed with': 'sealed_with',
  });

/** Lets a command name an endpoint by its id, or by its partner and environment. */
export function endpointArgument(command: Command): Command {
  return command
    .argument('[endpoint-id]', 'the endpoint; or name it by --partner and --environment', idOf('endpoint'))
    .option('--partner <partner>', 'whose endpoint', idOf('partner'))
    .addOption(environmentOption('which of its endpoints'));
}

/** The endpoint that a command named. @throws Refused when there is none, or it was named in neither way or in both. */
export async function namedEndpoint(
  db: DbOrTransaction,
  { options }: Pick<Call, 'options'>,
  endpointId: string | undefined,
): Promise<WebhookEndpoint> {
  const { partner: partnerId, environment } = options;
  if (endpointId !== undefined && partnerId === undefined && environment === undefined)
    return existingEndpoint(db, endpointId);
  if (endpointId !== undefined || partnerId === undefined || environment === undefined)
    throw new Refused('invalid', 'Name the endpoint by its id, or by --partner and --environment.');
  const found = await findEndpoint(db, partnerId, environment);
  if (found === null) throw new Refused('not_found', `${partnerId} has no ${environment} endpoint.`);
  return found;
}
