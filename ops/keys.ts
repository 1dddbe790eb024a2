import type { Command } from 'commander';
import { apiKeyChanges, issueKey, lastUses, listKeys } from '../db/keys';
import { issueServiceKey, listServiceKeys, serviceKeyChanges } from '../db/service-keys';
import type { ApiKeySummary, Changed, Issued, KeyChanges, KeyEnvironment, KeySummary } from '../db/keys';
import type { DbOrTransaction } from '../db/postgres/connect';
import { duration, durationOrNever, environmentOption, inPages, overlapOption, paged } from './arguments';
import type { Page } from './arguments';
import { changeAndLog, group, handle, type OpsDeps, type Owner } from './call';
import { idOf, type IdName, withId } from './ids';
import { differences, listed, shownOnce, snakeCased } from './output';

const KEY_EXAMPLES = `
  ops keys create --partner P100001 --environment live
  ops keys create --partner P100001 --environment sandbox --expires-in 90d
  ops keys rotate key_01K… --overlap 24h      the old key works for another 24 hours
  ops keys revoke key_01K…                    answers 401 within a second, for good`;

const SERVICE_KEY_EXAMPLES = `
  ops service-keys create --name 'Lender A gateway' --lender lender_a --environment live
  ops service-keys rotate svk_01K… --overlap 24h     the old key works for another 24 hours
  ops service-keys revoke svk_01K…                   answers 401 at once, for good`;

const LIFE = ['--expires-in <duration>', 'life of the key, such as 90d; default: no end', duration] as const;

const COLUMNS = {
  'last used': 'last_used_at',
  expires: 'expires_at',
  created: 'created_at',
  'replaced by': 'replaced_by',
} as const;

export function addKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = group(program, 'keys', 'API keys of partners.', KEY_EXAMPLES);

  const create = keys
    .command('create')
    .description('Make a key. It is shown once.')
    .requiredOption('--partner <partner>', 'partner that will own it', idOf('partner'))
    .addOption(environmentOption('where it works').makeOptionMandatory())
    .option(...LIFE);
  handle<Owner>(create, deps, async (call) => {
    const { partner: partnerId, environment, expiresIn: expiresInSeconds = null } = call.options;
    const issued = await changeAndLog(call, 'keys.create', async (tx, log) => {
      const done = await issueKey(tx, { partnerId, environment, expiresInSeconds });
      const { keyId, expiresAt } = done.summary;
      await log(keyId, { partner_id: partnerId, environment, expires_at: expiresAt });
      return done;
    });
    return issuedAnswer(issued, `Issued ${environment} key ${issued.summary.keyId} to ${partnerId}.`);
  });

  const list = keys
    .command('list')
    .description('Keys, without the keys themselves.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .addOption(environmentOption('of this environment only'));
  handle<Page & { environment?: KeyEnvironment }>(
    inPages(list, 'key', { byDefault: 200 }),
    deps,
    async (call) => {
      const { partner: partnerId, environment, after, limit } = call.options;
      const found = await listKeys(call.db, { partnerId, environment, after, limit });
      const answer = listed(found, await viewOf(call.db, found), {
        key: 'key_id',
        partner: 'partner_id',
        environment: 'environment',
        'ends in': 'last_four',
        state: keyStatus,
        ...COLUMNS,
      });
      return paged(call, answer, found.at(-1)?.keyId);
    },
  );

  addLifecycle(keys, deps, {
    noun: 'keys',
    id: 'key',
    changes: apiKeyChanges,
    owner: ({ partnerId }) => partnerId,
    details: ({ partnerId }) => ({ partner_id: partnerId }),
  });
}

export function addServiceKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = group(
    program,
    'service-keys',
    'Keys of the internal listener, for lender integrations: each for one lender and one environment.',
    SERVICE_KEY_EXAMPLES,
  );

  const create = keys
    .command('create')
    .description('Make a service key. It is shown once.')
    .requiredOption('--name <name>', 'who will use it')
    .requiredOption('--lender <lender>', 'the lender whose applications it is for', idOf('lender'))
    .addOption(environmentOption('of the applications it is for, and of their quotes').makeOptionMandatory())
    .option(...LIFE);
  handle<{ name: string; lender: string; environment: KeyEnvironment }>(create, deps, async (call) => {
    const { name, lender, environment, expiresIn: expiresInSeconds = null } = call.options;
    const issued = await changeAndLog(call, 'service-keys.create', async (tx, log) => {
      const done = await issueServiceKey(tx, { name, lender, environment, expiresInSeconds });
      const { keyId, expiresAt, name: stored } = done.summary;
      await log(keyId, { name: stored, lender, environment, expires_at: expiresAt });
      return done;
    });
    const { keyId, name: stored } = issued.summary;
    return issuedAnswer(issued, `Issued service key ${keyId} to ${stored}, for ${lender} in ${environment}.`);
  });

  const list = keys.command('list').description('Service keys, without the keys themselves.');
  handle(list, deps, async ({ db }) => {
    const found = await listServiceKeys(db);
    return listed(found, await viewOf(db, found), {
      key: 'key_id',
      name: 'name',
      lender: 'lender',
      environment: 'environment',
      'ends in': 'last_four',
      state: keyStatus,
      ...COLUMNS,
    });
  });

  addLifecycle(keys, deps, {
    noun: 'service-keys',
    id: 'serviceKey',
    changes: serviceKeyChanges,
    owner: ({ name }) => name,
    details: ({ name, lender, environment }) => ({ name, lender, environment }),
  });
}

/** Keys with when each was last used. */
async function viewOf<S extends KeySummary>(db: DbOrTransaction, found: readonly S[]) {
  const ids = found.map(({ keyId }) => keyId);
  const used = await lastUses(db, ids);
  return (one: S) => ({ ...snakeCased(one), last_used_at: used.get(one.keyId) ?? null });
}

interface KeyKind<S extends KeySummary> {
  readonly noun: string;
  readonly id: IdName;
  readonly changes: KeyChanges<S>;
  readonly owner: (summary: S) => string;
  readonly details: (summary: S) => Record<string, unknown>;
}

function addLifecycle<S extends KeySummary>(keys: Command, deps: OpsDeps, kind: KeyKind<S>): void {
  const { noun, changes } = kind;

  const rotate = withId(keys.command('rotate'), kind.id, '<key-id>')
    .description('Issue a successor, shown once; the old key works on for the overlap.')
    .option(
      '--expires-in <duration>',
      "life of the successor, such as 365d, or never; default: as long as the old key's was",
      durationOrNever,
    )
    .addOption(overlapOption('the old key works on'));
  handle<{ expiresIn?: number | 'never'; overlap: number }>(rotate, deps, async (call, keyId = '') => {
    const { overlap: overlapSeconds, expiresIn } = call.options;
    const expiresInSeconds = expiresIn === 'never' ? null : expiresIn;
    const issued = await changeAndLog(call, `${noun}.rotate`, async (tx, log) => {
      const done = await changes.rotate(tx, { keyId, overlapSeconds, expiresInSeconds });
      const { summary, replaced } = done;
      const details = { replaced_by: summary.keyId, expires_at: replaced.expiresAt };
      await log(keyId, { ...kind.details(summary), ...details });
      await log(summary.keyId, { ...kind.details(summary), replaces: keyId, expires_at: summary.expiresAt });
      return done;
    });
    const end = issued.replaced.expiresAt?.toISOString();
    const life = issued.summary.expiresAt?.toISOString();
    const until = life === undefined ? 'It does not expire.' : `It expires at ${life}.`;
    const said = `Issued ${issued.summary.keyId} in place of ${keyId}, which works until ${end}. ${until}`;
    const { json, text } = issuedAnswer(issued, said);
    return { json: { ...json, replaced: snakeCased(issued.replaced) }, text };
  });

  addChange('revoke', 'revoked', 'End a key for good, at once.', changes.revoke);
  for (const [verb, state, description] of [
    ['disable', 'inactive', 'Make a key answer 401 until it is enabled.'],
    ['enable', 'active', 'Let a disabled key work again.'],
  ] as const)
    addChange(verb, state, description, (tx, keyId) => changes.setState(tx, keyId, state));

  function addChange(
    verb: string,
    state: string,
    description: string,
    make: (tx: DbOrTransaction, keyId: string) => Promise<Changed<S>>,
  ): void {
    const command = withId(keys.command(verb), kind.id, '<key-id>').description(description);
    handle(command, deps, async (call, keyId = '') => {
      const { changed, summary } = await changeAndLog(call, `${noun}.${verb}`, async (tx, log) => {
        const done = await make(tx, keyId);
        const fields = differences({ state: done.was }, { state });
        if (done.changed) await log(keyId, { ...kind.details(done.summary), fields });
        return done;
      });
      const text = `Key ${keyId} of ${kind.owner(summary)} ${changed ? 'is now' : 'was already'} ${state}.`;
      return { json: { ...snakeCased(summary), changed }, text };
    });
  }
}

const issuedAnswer = <S extends KeySummary>({ key, summary }: Issued<S>, said: string) =>
  shownOnce('key', key, said, snakeCased(summary));

function keyStatus({ state, expired, ...rest }: KeySummary & Partial<Pick<ApiKeySummary, 'partnerState'>>) {
  if (state !== 'active') return state;
  if (expired) return 'expired';
  return rest.partnerState === 'inactive' ? 'active (partner inactive)' : state;
}
