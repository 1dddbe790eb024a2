import type { Command } from 'commander';
import type { DbOrTransaction } from '../db/postgres/connect';
import type { Changed, KeyChanges, KeySummary } from '../db/keys/key';
import { duration, durationOrNever, idOf, type IdKind } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { issuedAnswer } from './key-view';
import { snakeCased } from './output';

/** A kind of keys, as commands speak of it. */
export interface KeyCommands<S extends KeySummary> {
  /** First word of their changes in the log, such as `keys`. */
  readonly noun: string;
  readonly id: IdKind;
  readonly changes: KeyChanges<S>;
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
    .argument('<key-id>', '', idOf(kind.id))
    .description('Issue a successor, shown once; the old key works on for the overlap.')
    .option(
      '--expires-in <duration>',
      "life of the successor, such as 365d, or never; default: as long as the old key's was",
      durationOrNever,
    )
    .option('--overlap <duration>', 'how long the old key works on, 0 to 7d; default: 24h', duration);
  handle<{ expiresIn?: number | 'never'; overlap?: number }>(rotate, deps, async (call, keyId = '') => {
    const issued = await changeAndLog(call, `${noun}.rotate`, async (tx, log) => {
      const { overlap: overlapSeconds, expiresIn } = call.options;
      const expiresInSeconds = expiresIn === 'never' ? null : expiresIn;
      const done = await changes.rotate(tx, { keyId, overlapSeconds, expiresInSeconds });
      const { summary, replaced } = done;
      await log(keyId, {
        ...kind.details(summary),
        replaced_by: summary.keyId,
        expires_at: replaced.expiresAt,
      });
      return done;
    });
    const end = issued.replaced.expiresAt?.toISOString();
    const life = issued.summary.expiresAt?.toISOString();
    const until = life === undefined ? 'It does not expire.' : `It expires at ${life}.`;
    const said = `Issued ${issued.summary.keyId} in place of ${keyId}, which works until ${end}. ${until}`;
    const answer = issuedAnswer(issued, said);
    return { ...answer, json: { ...answer.json, replaced: snakeCased(issued.replaced) } };
  });

  addChange('revoke', 'revoked', 'End a key for good, at once.', changes.revoke);
  addChange('deactivate', 'inactive', 'Make a key answer 401 until it is activated.', (tx, keyId) =>
    changes.setState(tx, keyId, 'inactive'),
  );
  addChange('activate', 'active', 'Let a deactivated key work again.', (tx, keyId) =>
    changes.setState(tx, keyId, 'active'),
  );

  function addChange(
    verb: string,
    state: string,
    description: string,
    make: (tx: DbOrTransaction, keyId: string) => Promise<Changed<S>>,
  ): void {
    const command = keys.command(verb).argument('<key-id>', '', idOf(kind.id)).description(description);
    handle(command, deps, async (call, keyId = '') => {
      const { changed, summary } = await changeAndLog(call, `${noun}.${verb}`, async (tx, log) => {
        const done = await make(tx, keyId);
        if (done.changed) await log(keyId, { ...kind.details(done.summary), state });
        return done;
      });
      const text = `Key ${keyId}${kind.owner(summary)} ${changed ? 'is now' : 'was already'} ${state}.`;
      return { json: { ...snakeCased(summary), changed }, text };
    });
  }
}
