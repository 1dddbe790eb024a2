import type { Command } from 'commander';
import type { KeyEnvironment } from '../db/keys/key';
import { lastAttempts, withQueue } from '../db/endpoints/attempts';
import { Refused } from '../db/refused';
import {
  listEndpoints,
  registerEndpoint,
  setEndpointState,
  type WebhookEndpoint,
} from '../db/endpoints/endpoints';
import type { DbOrTransaction } from '../db/postgres/connect';
import { listSecrets, generateWebhookSecret } from '../db/endpoints/secrets';
import { environmentOption, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { endpointArgument, namedEndpoint } from './endpoint-argument';
import { addWebhookSecretCommands } from './webhook-secrets';
import { addWebhookTest } from './webhook-test';
import {
  endpointAnswer,
  endpointStatus,
  endpointTable,
  endpointView,
  heldText,
  secretAnswer,
} from './webhook-view';

const EXAMPLES = `
Examples:
  ops webhooks register --partner P100001 --environment live --url https://partner.example/hooks
  ops webhooks show --partner P100001 --environment live
  ops webhooks test --partner P100001 --environment sandbox --wait
  ops webhooks disable whe_01K…            nothing is sent until it is enabled
  ops webhooks secrets rotate whe_01K… --overlap 2d`;

/** Of those that have ended: enough to see whether an endpoint is well. */
const ATTEMPTS_SHOWN = 10;

interface RegisterOptions {
  readonly partner: string;
  readonly environment: KeyEnvironment;
  readonly url: string;
  readonly replace?: true;
}

/** `ops webhooks …` */
export function addWebhookCommands(program: Command, deps: OpsDeps): void {
  const webhooks = program
    .command('webhooks')
    .description('Endpoints that partners are notified at, and the secrets that deliveries are signed with.')
    .addHelpText('after', EXAMPLES);

  const register = webhooks
    .command('register')
    .description('Register the endpoint of a partner and environment. Its secret is shown once.')
    .requiredOption('--partner <partner>', 'whose endpoint', idOf('partner'))
    .addOption(environmentOption('which of its keys it is for').makeOptionMandatory())
    .requiredOption('--url <url>', 'public https:// address without user name, query, fragment or port')
    .option('--replace', 'put it in the place of the one that is there, with a new secret');
  handle<RegisterOptions>(register, deps, async (call) => {
    const { partner: partnerId, environment, replace = false } = call.options;
    const url = await checkedUrl(deps, call.options.url);
    const keyRing = deps.keyRing();
    const secret = generateWebhookSecret();
    const { endpoint, replaced, secretId, held } = await changeAndLog(
      call,
      'webhooks.register',
      async (tx, log) => {
        const wanted = { partnerId, environment, url, secret, keyRing, replace };
        const { endpoint, secretId, newKeyPairId, ...done } = await registerEndpoint(tx, wanted);
        const replaced = done.replaced?.endpointId ?? null;
        const details = { partner_id: partnerId, environment, url, secret_id: secretId, replaced };
        await log(endpoint.endpointId, {
          ...details,
          ...(newKeyPairId !== null && { webhook_key_id: newKeyPairId }),
        });
        return { endpoint, replaced, secretId, held: await heldFor(tx, endpoint) };
      },
    );
    const instead = replaced === null ? '' : `, in place of ${replaced}`;
    return secretAnswer({
      secret,
      said: `Registered ${environment} endpoint ${endpoint.endpointId} of ${partnerId}${instead}: ${url}${heldText(held)}`,
      view: { ...endpointView(endpoint), held, secret_id: secretId, replaced },
    });
  });

  const list = webhooks
    .command('list')
    .description('Endpoints, their health, and what waits for each: how many, and how long the oldest has.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .option('--paused', 'only those with deliveries that somebody has paused')
    .option('--removed', 'those that were replaced, too');
  handle<{ paused?: true; removed?: true }>(list, deps, async (call) => {
    const { partner: partnerId, paused = false, removed = false } = call.options;
    const queued = await withQueue(call.db, await listEndpoints(call.db, { partnerId, removed }));
    return endpointTable(
      queued.filter(({ queue }) => !paused || queue.paused.count > 0),
      deps.now(),
    );
  });

  const show = endpointArgument(webhooks.command('show')).description(
    'One endpoint: state, health, secrets by id, the attempts under way, and the last that have ended.',
  );
  handle(show, deps, async (call, endpointId) => {
    const endpoint = await namedEndpoint(call.db, call, endpointId);
    const [whole] = await withQueue(call.db, [endpoint]);
    if (whole === undefined) throw new Error('the figures of an endpoint came to nothing');
    const secrets = await listSecrets(call.db, endpoint.endpointId);
    return endpointAnswer(whole, secrets, await lastAttempts(call.db, endpoint, ATTEMPTS_SHOWN));
  });

  addSwitch('disable', 'disabled', 'Send nothing there until it is enabled.');
  addSwitch('enable', 'active', 'Let a disabled endpoint be sent to again.');
  addWebhookTest(webhooks, deps);
  addWebhookSecretCommands(webhooks, deps);

  function addSwitch(verb: string, state: 'active' | 'disabled', description: string): void {
    const command = endpointArgument(webhooks.command(verb)).description(description);
    handle(command, deps, async (call, named) => {
      const { changed, endpoint, held } = await changeAndLog(call, `webhooks.${verb}`, async (tx, log) => {
        const { endpointId } = await namedEndpoint(tx, call, named);
        const wanted = state === 'active' ? ({ state } as const) : ({ state, reason: 'operator' } as const);
        const done = await setEndpointState(tx, endpointId, wanted);
        const { partnerId, environment } = done.endpoint;
        const details = { partner_id: partnerId, environment, state };
        if (done.changed) await log(endpointId, details);
        const held = await heldFor(tx, done.endpoint);
        return { ...done, held };
      });
      const now = `Endpoint ${endpoint.endpointId} ${changed ? 'is now' : 'was already'} ${endpointStatus(endpoint)}.`;
      const text = state === 'active' ? now + heldText(held) : now;
      return { json: { ...endpointView(endpoint), held, changed }, text };
    });
  }
}

const heldFor = async (tx: DbOrTransaction, endpoint: WebhookEndpoint) =>
  (await withQueue(tx, [endpoint]))[0]?.queue.held.count ?? 0;

/** The URL as it will be stored. @throws Refused when it may not be registered. */
async function checkedUrl({ checkTarget }: OpsDeps, url: string): Promise<string> {
  const checked = await checkTarget(url).catch((error: unknown) => {
    // Without the error itself: its code would pass for one of the database.
    throw new Error(`The URL's host cannot be looked up from here: ${(error as Error).message}`);
  });
  if (!checked.ok) throw new Refused('invalid', checked.message);
  return checked.url;
}
