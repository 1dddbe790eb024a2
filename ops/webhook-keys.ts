import type { Command } from 'commander';
import { listKeyPairs, rotateKeyPair, type KeyPairSummary } from '../db/endpoints/key-pairs';
import { DEFAULT_OVERLAP_SECONDS, type KeyEnvironment } from '../db/keys/key';
import { duration, environmentOption, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { listed } from './output';

const EXAMPLES = `
Examples:
  ops webhook-keys list --partner P100001
  ops webhook-keys rotate --partner P100001 --environment live                 old and new sign for 24 hours
  ops webhook-keys rotate --partner P100001 --environment live --overlap 0     it leaked: the old ones end now`;

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

interface RotateOptions {
  readonly partner: string;
  readonly environment: KeyEnvironment;
  readonly overlap?: number;
}

/** `ops webhook-keys …` */
export function addWebhookKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = program
    .command('webhook-keys')
    .description(
      'Key pairs that deliveries are signed with besides. Partners read the public keys (GET /v1/webhook-keys).',
    )
    .addHelpText('after', EXAMPLES);

  const list = keys
    .command('list')
    .description('Key pairs with their public keys, those that have ended too.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'));
  handle(list, deps, async (call) => {
    const { partner: partnerId, environment } = call.options;
    return listed(await listKeyPairs(call.db, { partnerId, environment }), keyPairView, {
      key: 'webhook_key_id',
      partner: 'partner_id',
      environment: 'environment',
      signs: 'signs',
      until: 'expires_at',
      created: 'created_at',
      'sealed with': 'sealed_with',
      'public key': 'public_key',
    });
  });

  const rotate = keys
    .command('rotate')
    .description('Add a key pair; deliveries are signed with the present ones too for the overlap.')
    .requiredOption('--partner <partner>', 'whose', idOf('partner'))
    .addOption(environmentOption('of which environment').makeOptionMandatory())
    .option('--overlap <duration>', 'how long the present ones sign on, 0 to 7d; default: 24h', duration);
  handle<RotateOptions>(rotate, deps, async (call) => {
    const {
      partner: partnerId,
      environment,
      overlap: overlapSeconds = DEFAULT_OVERLAP_SECONDS,
    } = call.options;
    const keyRing = deps.keyRing();
    const added = await changeAndLog(call, 'webhook-keys.rotate', async (tx, log) => {
      const done = await rotateKeyPair(tx, { partnerId, environment }, { overlapSeconds, keyRing });
      const details = { partner_id: partnerId, environment, overlap_seconds: overlapSeconds };
      await log(done.keyPairId, details);
      return done;
    });
    const ends = added.live.map(({ expiresAt }) => expiresAt?.getTime() ?? 0);
    const last = Math.max(...ends);
    const overlap =
      last === 0 ? 'It signs alone.' : `Older ones sign on until ${new Date(last).toISOString()}.`;
    return {
      json: {
        webhook_key_id: added.keyPairId,
        partner_id: partnerId,
        environment,
        public_key: added.publicKey,
        live: added.live.map(({ keyPairId, expiresAt }) => ({
          webhook_key_id: keyPairId,
          expires_at: expiresAt,
        })),
      },
      text:
        `Added key pair ${added.keyPairId} to the ${environment} environment of ${partnerId}. ${overlap}\n` +
        `Its public key, which the partner reads at GET /v1/webhook-keys: ${added.publicKey}`,
    };
  });
}
