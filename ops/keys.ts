import { Option, type Command } from 'commander';
import { issueKey, revokeKey, rotateKey, setKeyState } from '../db/queries/api-key-changes';
import { listKeys, type ApiKeySummary } from '../db/queries/api-keys';
import { appendChange } from '../db/queries/change-log';
import type { DbOrTransaction } from '../db/connect';
import type { KeyEnvironment } from '../db/keys';
import { duration } from './arguments';
import { handle, numberOption, textOption, type Answer, type OpsDeps } from './call';
import { issuedAnswer, keyStatus, keyView } from './key-view';
import { table } from './output';

const EXAMPLES = `
Examples:
  ops keys issue --partner P100001 --environment live
  ops keys issue --partner P100001 --environment sandbox --expires-in 90d
  ops keys rotate key_01K… --overlap 24h      the old key works for another 24 hours
  ops keys revoke key_01K…                    answers 401 within a second, for good`;

/** `ops keys …` */
export function addKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = program.command('keys').description('API keys of partners.').addHelpText('after', EXAMPLES);
  const { actor } = deps;

  const issue = keys
    .command('issue')
    .description('Issue a key. It is shown once.')
    .requiredOption('--partner <partner>', 'partner that will own it')
    .addOption(
      new Option('--environment <environment>', 'where it works')
        .choices(['sandbox', 'live'])
        .makeOptionMandatory(),
    )
    .option('--expires-in <duration>', 'life of the key, such as 90d; default: no end', duration);
  handle(issue, deps, async (call) => {
    const partnerId = textOption(call, 'partner') ?? '';
    const environment = textOption(call, 'environment') as KeyEnvironment;
    const expiresInSeconds = numberOption(call, 'expiresIn') ?? null;
    const issued = await call.db.transaction(async (tx) => {
      const done = await issueKey(tx, { partnerId, environment, expiresInSeconds });
      const details = { partner_id: partnerId, environment, expires_at: done.summary.expiresAt };
      await appendChange(tx, { actor, action: 'keys.issue', subject: done.summary.keyId, details });
      return done;
    });
    return issuedAnswer(issued, `Issued ${environment} key ${issued.summary.keyId} to ${partnerId}.`);
  });

  const list = keys
    .command('list')
    .description('Keys, without the keys themselves.')
    .option('--partner <partner>', 'of this partner only');
  handle(list, deps, async (call) => {
    const found = await listKeys(call.db, textOption(call, 'partner') ?? null);
    const head = ['key', 'partner', 'environment', 'ends in', 'state', 'expires', 'created', 'replaced by'];
    const rows = found.map((key) => [
      key.keyId,
      key.partnerId,
      key.environment,
      key.lastFour,
      keyStatus(key),
      key.expiresAt,
      key.createdAt,
      key.replacedBy,
    ]);
    return { json: found.map(keyView), text: table(head, rows) };
  });

  const rotate = keys
    .command('rotate')
    .argument('<key-id>')
    .description('Issue a successor, shown once; the old key works on for the overlap.')
    .option('--overlap <duration>', 'how long the old key works on, 0 to 7d; default: 24h', duration);
  handle(rotate, deps, async (call, keyId = '') => {
    const overlapSeconds = numberOption(call, 'overlap');
    const issued = await call.db.transaction(async (tx) => {
      const done = await rotateKey(tx, { keyId, ...(overlapSeconds !== undefined && { overlapSeconds }) });
      const details = { replaced_by: done.summary.keyId, expires_at: done.replaced.expiresAt };
      await appendChange(tx, { actor, action: 'keys.rotate', subject: keyId, details });
      return done;
    });
    const end = issued.replaced.expiresAt?.toISOString();
    const answer = issuedAnswer(
      issued,
      `Issued ${issued.summary.keyId} in place of ${keyId}, which works until ${end}.`,
    );
    return { ...answer, json: { ...(answer.json as object), replaced: keyView(issued.replaced) } };
  });

  const revoke = keys.command('revoke').argument('<key-id>').description('End a key for good, at once.');
  handle(revoke, deps, ({ db }, keyId = '') =>
    change(db, keyId, 'revoke', 'revoked', (tx) => revokeKey(tx, keyId)),
  );

  const deactivate = keys
    .command('deactivate')
    .argument('<key-id>')
    .description('Make a key answer 401 until it is activated.');
  handle(deactivate, deps, ({ db }, keyId = '') =>
    change(db, keyId, 'deactivate', 'inactive', (tx) => setKeyState(tx, keyId, 'inactive')),
  );

  const activate = keys
    .command('activate')
    .argument('<key-id>')
    .description('Let a deactivated key work again.');
  handle(activate, deps, ({ db }, keyId = '') =>
    change(db, keyId, 'activate', 'active', (tx) => setKeyState(tx, keyId, 'active')),
  );

  async function change(
    db: DbOrTransaction,
    keyId: string,
    verb: string,
    state: string,
    make: (tx: DbOrTransaction) => Promise<{ changed: boolean; summary: ApiKeySummary }>,
  ): Promise<Answer> {
    const { changed, summary } = await db.transaction(async (tx) => {
      const done = await make(tx);
      const details = { partner_id: done.summary.partnerId, state };
      if (done.changed) await appendChange(tx, { actor, action: `keys.${verb}`, subject: keyId, details });
      return done;
    });
    const text = `Key ${keyId} of ${summary.partnerId} ${changed ? 'is now' : 'was already'} ${state}.`;
    return { json: { ...keyView(summary), changed }, text };
  }
}
