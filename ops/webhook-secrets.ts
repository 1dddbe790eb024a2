import type { Command } from 'commander';
import { DEFAULT_OVERLAP_SECONDS } from '../db/keys/key';
import { listSecrets, rotateSecret, generateWebhookSecret } from '../db/endpoints/secrets';
import { duration } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { endpointArgument, namedEndpoint } from './endpoint-argument';
import { secretAnswer, secretTable, secretView } from './webhook-view';

const EXAMPLES = `
Examples:
  ops webhooks secrets list whe_01K…
  ops webhooks secrets rotate whe_01K…                 old and new sign for 24 hours
  ops webhooks secrets rotate whe_01K… --overlap 0     it leaked: the old ones end now`;

/** `ops webhooks secrets …` */
export function addWebhookSecretCommands(webhooks: Command, deps: OpsDeps): void {
  const secrets = webhooks
    .command('secrets')
    .description('Signing secrets of endpoints. Each delivery carries a signature for every live one.')
    .addHelpText('after', EXAMPLES);

  const rotate = endpointArgument(secrets.command('rotate'))
    .description('Add a secret, shown once; the present ones sign on for the overlap.')
    .option('--overlap <duration>', 'how long the present ones sign on, 0 to 7d; default: 24h', duration);
  handle<{ overlap?: number }>(rotate, deps, async (call, named) => {
    const { overlap: overlapSeconds = DEFAULT_OVERLAP_SECONDS } = call.options;
    const keyRing = deps.keyRing();
    const secret = generateWebhookSecret();
    const { endpointId, secretId, all } = await changeAndLog(
      call,
      'webhooks.secrets.rotate',
      async (tx, log) => {
        const { endpointId, partnerId } = await namedEndpoint(tx, call, named);
        const seal = (place: { endpointId: string; secretId: string }) => keyRing.seal(secret, place);
        const { secretId } = await rotateSecret(tx, endpointId, { overlapSeconds, seal });
        const details = { partner_id: partnerId, secret_id: secretId, overlap_seconds: overlapSeconds };
        await log(endpointId, details);
        return { endpointId, secretId, all: await listSecrets(tx, endpointId) };
      },
    );
    const live = all.filter((one) => one.live);
    const ends = live.map((one) => one.expiresAt?.getTime() ?? 0);
    const last = Math.max(...ends);
    const overlap =
      last === 0 ? 'It signs alone.' : `Older ones sign on until ${new Date(last).toISOString()}.`;
    return secretAnswer({
      secret,
      said: `Added secret ${secretId} to ${endpointId}. ${overlap}`,
      view: { endpoint_id: endpointId, secret_id: secretId, live: live.map(secretView) },
    });
  });

  const list = endpointArgument(secrets.command('list')).description('Secrets by id, never the secrets.');
  handle(list, deps, async (call, named) => {
    const { endpointId } = await namedEndpoint(call.db, call, named);
    const found = await listSecrets(call.db, endpointId);
    return secretTable(found);
  });
}
