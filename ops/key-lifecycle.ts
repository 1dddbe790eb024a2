import type { Command } from 'commander';
import type { DbOrTransaction } from '../db/postgres/connect';
import { appendChange } from '../db/audit/change-log';
import type { Changed, KeyChanges, KeySummary } from '../db/keys/key-changes';
import { duration } from './arguments';
import { handle, numberOption, type Answer, type OpsDeps } from './call';
import { issuedAnswer } from './key-view';

/** A kind of keys, as commands speak of it. */
export interface KeyCommands<S extends KeySummary> {
  /** First word of their changes in the log, such as `keys`. */
  readonly noun: string;
  readonly changes: KeyChanges<S>;
  /** A key without the key itself. */
  readonly view: (summary: S) => object;
  /** Whose it is: ` of P100001`. */
  readonly owner: (summary: S) => string;
  /** What the log says of it besides its state. */
  readonly details: (summary: S) => Record<string, unknown>;
}

/** Adds `rotate`, `revoke`, `deactivate` and `activate`. */
export function addKeyLifecycle<S extends KeySummary>(
  keys: Command,
  deps: OpsDeps,
  kind: KeyCommands<S>,
): void {
  const { noun, changes } = kind;

  const rotate = keys
    .command('rotate')
    .argument('<key-id>')
    .description('Issue a successor, shown once; the old key works on for the overlap.')
    .option('--overlap <duration>', 'how long the old key works on, 0 to 7d; default: 24h', duration);
  handle(rotate, deps, async (call, keyId = '') => {
    const issued = await call.db.transaction(async (tx) => {
      const done = await changes.rotate(tx, { keyId, overlapSeconds: numberOption(call, 'overlap') });
      const details = { replaced_by: done.summary.keyId, expires_at: done.replaced.expiresAt };
      await appendChange(tx, { actor: deps.actor, action: `${noun}.rotate`, subject: keyId, details });
      return done;
    });
    const end = issued.replaced.expiresAt?.toISOString();
    const said = `Issued ${issued.summary.keyId} in place of ${keyId}, which works until ${end}.`;
    const answer = issuedAnswer(issued.key, kind.view(issued.summary), said);
    return { ...answer, json: { ...(answer.json as object), replaced: kind.view(issued.replaced) } };
  });

  const revoke = keys.command('revoke').argument('<key-id>').description('End a key for good, at once.');
  handle(revoke, deps, ({ db }, keyId = '') =>
    change(db, keyId, 'revoke', 'revoked', (tx) => changes.revoke(tx, keyId)),
  );

  const deactivate = keys
    .command('deactivate')
    .argument('<key-id>')
    .description('Make a key answer 401 until it is activated.');
  handle(deactivate, deps, ({ db }, keyId = '') =>
    change(db, keyId, 'deactivate', 'inactive', (tx) => changes.setState(tx, keyId, 'inactive')),
  );

  const activate = keys
    .command('activate')
    .argument('<key-id>')
    .description('Let a deactivated key work again.');
  handle(activate, deps, ({ db }, keyId = '') =>
    change(db, keyId, 'activate', 'active', (tx) => changes.setState(tx, keyId, 'active')),
  );

  async function change(
    db: DbOrTransaction,
    keyId: string,
    verb: string,
    state: string,
    make: (tx: DbOrTransaction) => Promise<Changed<S>>,
  ): Promise<Answer> {
    const { changed, summary } = await db.transaction(async (tx) => {
      const done = await make(tx);
      const details = { ...kind.details(done.summary), state };
      if (done.changed)
        await appendChange(tx, { actor: deps.actor, action: `${noun}.${verb}`, subject: keyId, details });
      return done;
    });
    const text = `Key ${keyId}${kind.owner(summary)} ${changed ? 'is now' : 'was already'} ${state}.`;
    return { json: { ...kind.view(summary), changed }, text };
  }
}
