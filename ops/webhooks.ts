import type { Command } from 'commander';
import { lastAttempts, withQueue, type EndpointWithQueue, type QueueFigures } from '../db/endpoints/attempts';
import { listEndpoints, registerEndpoint, setEndpointState } from '../db/endpoints/endpoints';
import type { WebhookEndpoint } from '../db/endpoints/endpoints';
import { generateWebhookSecret, listSecrets } from '../db/endpoints/secrets';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { environmentOption } from './arguments';
import { changeAndLog, group, handle, type OpsDeps, type Owner } from './call';
import { idOf } from './ids';
import { describeAttempt } from './notification-view';
import { age, differences, facts, listed, shownOnce, snakeCased } from './output';
import { addWebhookSecretCommands, endpointArgument, namedEndpoint, secretTable } from './webhook-secrets';
import { addWebhookTest } from './webhook-test';

const EXAMPLES = `
  ops webhooks create --partner P100001 --environment live --url https://partner.example/hooks
  ops webhooks show --partner P100001 --environment live
  ops webhooks test --partner P100001 --environment sandbox --wait
  ops webhooks disable whe_01K…            nothing is sent until it is enabled
  ops webhooks secrets rotate whe_01K… --overlap 2d`;

/** Of those that have ended: enough to see whether an endpoint works. */
const ATTEMPTS_SHOWN = 10;

export function addWebhookCommands(program: Command, deps: OpsDeps): void {
  const webhooks = group(
    program,
    'webhooks',
    'Endpoints that partners are notified at, and the secrets that deliveries are signed with.',
    EXAMPLES,
  );

  const create = webhooks
    .command('create')
    .description('Register the endpoint of a partner and environment. Its secret is shown once.')
    .requiredOption('--partner <partner>', 'whose endpoint', idOf('partner'))
    .addOption(environmentOption('which of its keys it is for').makeOptionMandatory())
    .requiredOption('--url <url>', 'public https:// address without user name, query, fragment or port')
    .option('--replace', 'put it in the place of the one that is there, with a new secret');
  handle<Owner & { url: string; replace?: true }>(create, deps, async (call) => {
    const { partner: partnerId, environment, replace = false } = call.options;
    const url = await checkedUrl(deps, call.options.url);
    const keyRing = deps.keyRing();
    const secret = generateWebhookSecret();
    const view = await changeAndLog(call, 'webhooks.create', async (tx, log) => {
      const wanted = { partnerId, environment, url, secret, keyRing, replace };
      const { endpoint, secretId, newKeyPairId, ...done } = await registerEndpoint(tx, wanted);
      const replaced = done.replaced?.endpointId ?? null;
      const details = { partner_id: partnerId, environment, url, secret_id: secretId, replaced };
      const keyPair = newKeyPairId === null ? {} : { webhook_key_id: newKeyPairId };
      await log(endpoint.endpointId, { ...details, ...keyPair });
      return { ...endpointView(endpoint), held: await heldFor(tx, endpoint), secret_id: secretId, replaced };
    });
    const instead = view.replaced === null ? '' : `, in place of ${view.replaced}`;
    const said = `Registered ${environment} endpoint ${view.endpoint_id} of ${partnerId}${instead}: ${url}`;
    return shownOnce('secret', secret, said + heldText(view.held), view);
  });

  const list = webhooks
    .command('list')
    .description('Endpoints, their health, and what waits for each: how many, and how long the oldest has.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .option('--paused', 'only those with deliveries that somebody has paused')
    .option('--removed', 'those that were replaced, too');
  handle<{ paused?: true; removed?: true }>(list, deps, async ({ db, options }) => {
    const { partner: partnerId, paused = false, removed = false } = options;
    const queued = await withQueue(db, await listEndpoints(db, { partnerId, removed }));
    const at = await deps.now(db);
    const waiting = (what: keyof QueueFigures) => (one: EndpointWithQueue) => {
      const { count, since } = one.queue[what];
      return since === null ? count : `${count}, ${age(since, at)}`;
    };
    const shown = queued.filter(({ queue }) => !paused || queue.paused.count > 0);
    return listed(shown, queuedView, {
      // First, so that no other column makes it be left out.
      endpoint: 'endpoint_id',
      partner: 'partner_id',
      env: 'environment',
      state: endpointStatus,
      failing: ({ failingSince, failuresSinceSuccess }) =>
        failingSince === null ? null : `${failuresSinceSuccess}, ${age(failingSince, at)}`,
      pending: waiting('pending'),
      retrying: waiting('retrying'),
      paused: waiting('paused'),
      held: waiting('held'),
      'last success': 'last_success_at',
      URL: 'url',
    });
  });

  const show = endpointArgument(webhooks.command('show')).description(
    'One endpoint: state, health, secrets by id, the attempts under way, and the last that have ended.',
  );
  handle(show, deps, async (call, endpointId) => {
    const { db } = call;
    const endpoint = await namedEndpoint(db, call, endpointId);
    const secrets = secretTable(await listSecrets(db, endpoint.endpointId));
    const { underWay, ended } = await lastAttempts(db, endpoint, ATTEMPTS_SHOWN);
    const tried = listed([...underWay, ...ended], snakeCased, {
      notification: 'notification_id',
      attempt: 'attempt_number',
      started: 'started_at',
      outcome: describeAttempt,
    });
    const queued = await withQueue(db, [endpoint]);
    const view = { ...queued.map(queuedView)[0], attempts_under_way: underWay.length };
    return {
      json: { ...view, secrets: secrets.json, last_attempts: tried.json },
      text: (most) =>
        `${facts(view)}\n\nSecrets:\n${secrets.text(most)}\n\nLast attempts:\n${tried.text(most)}`,
    };
  });

  addSwitch('disable', { state: 'disabled', reason: 'operator' }, 'Send nothing there until it is enabled.');
  addSwitch('enable', { state: 'active' }, 'Let a disabled endpoint be sent to again.');
  addWebhookTest(webhooks, deps);
  addWebhookSecretCommands(webhooks, deps);

  function addSwitch(verb: string, wanted: Parameters<typeof setEndpointState>[2], description: string) {
    const command = endpointArgument(webhooks.command(verb)).description(description);
    handle(command, deps, async (call, named) => {
      const { state } = wanted;
      const { changed, endpoint, held } = await changeAndLog(call, `webhooks.${verb}`, async (tx, log) => {
        const { endpointId, partnerId, environment } = await namedEndpoint(tx, call, named);
        const done = await setEndpointState(tx, endpointId, wanted);
        const fields = differences(stateOf(done.was), stateOf(done.endpoint));
        if (done.changed) await log(endpointId, { partner_id: partnerId, environment, fields });
        return { ...done, held: await heldFor(tx, done.endpoint) };
      });
      const now = `Endpoint ${endpoint.endpointId} ${changed ? 'is now' : 'was already'} ${endpointStatus(endpoint)}.`;
      const text = state === 'active' ? now + heldText(held) : now;
      return { json: { ...endpointView(endpoint), held, changed }, text };
    });
  }
}

/** `warnedHours` is the service's own note. The last success is stored once a minute, so no seconds are shown. */
function endpointView({ warnedHours: _, lastSuccessAt, ...shown }: WebhookEndpoint) {
  const toTheMinute = lastSuccessAt === null ? null : `${lastSuccessAt.toISOString().slice(0, 16)}Z`;
  return { ...snakeCased(shown), last_success_at: toTheMinute };
}

/** With what waits for it, and since when the oldest of it does. */
const queuedView = ({ queue: { pending, retrying, paused, held }, ...endpoint }: EndpointWithQueue) => ({
  ...endpointView(endpoint),
  pending: pending.count,
  pending_since: pending.since,
  retrying: retrying.count,
  retrying_since: retrying.since,
  paused: paused.count,
  paused_since: paused.since,
  held: held.count,
  held_since: held.since,
});

const stateOf = ({ state, disabledReason }: WebhookEndpoint) => ({ state, disabled_reason: disabledReason });

const endpointStatus = ({ state, disabledReason }: WebhookEndpoint) =>
  state === 'disabled' && disabledReason !== null ? `disabled (${disabledReason})` : state;

const heldFor = async (tx: DbOrTransaction, endpoint: WebhookEndpoint) =>
  (await withQueue(tx, [endpoint]))[0]?.queue.held.count ?? 0;

const heldText = (held: number) =>
  held === 0 ? '' : `\n${held} held notifications are released now, in their sequence, by the workers.`;

async function checkedUrl({ checkTarget }: OpsDeps, url: string): Promise<string> {
  const checked = await checkTarget(url);
  if (!checked.ok) throw new Refused('invalid', checked.message);
  return checked.url;
}
