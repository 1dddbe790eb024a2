import type { Command } from 'commander';
import { appendChange } from '../db/audit/change-log';
import { checkSecrets, resealSecrets, type Unreadable } from '../db/endpoints/sealed-rows';
import { group, handle, type OpsDeps } from './call';

const EXAMPLES = `
  ops secrets check                   whether WEBHOOK_KEYS opens all of them: after a restore, for one
  ops secrets reencrypt --dry-run     counts, and opens those secrets to see that they can be
  ops secrets reencrypt               after a new key was put in front of WEBHOOK_KEYS`;

const UNREADABLE_NAMED = 10;

export function addSecretCommands(program: Command, deps: OpsDeps): void {
  const secrets = group(
    program,
    'secrets',
    'Webhook secrets and private keys at rest, under the keys of WEBHOOK_KEYS.',
    EXAMPLES,
  );

  const check = secrets
    .command('check')
    .description(
      'Open every secret and private key, and change nothing. Exit code 1 when one cannot be opened.',
    );
  handle(check, deps, async ({ db }) => {
    const { found, byKey, unreadable } = await checkSecrets(db, deps.keyRing());
    if (unreadable.length > 0) throw unreadableError(found, unreadable, '');
    const keys = Object.entries(byKey).map(([keyId, count]) => `${count} under ${keyId}`);
    return {
      json: { found, by_key: byKey },
      text: `All ${found} secrets and private keys open${keys.length > 0 ? `: ${keys.join(', ')}` : ''}.`,
    };
  });

  const reencrypt = secrets
    .command('reencrypt')
    .description(
      'Seal every secret and private key anew that is not under the first key. Exit code 1 when one cannot be opened.',
    )
    .option('--dry-run', 'change nothing');
  handle(reencrypt, deps, async ({ db, options: { dryRun = false, json } }) => {
    const keyRing = deps.keyRing();
    const { currentKeyId } = keyRing;
    const { found, resealed, unreadable } = await resealSecrets(db, {
      keyRing,
      dryRun,
      record: (tx, resealed) =>
        appendChange(tx, {
          actor: deps.actor,
          action: 'secrets.reencrypt',
          subject: currentKeyId,
          details: { resealed },
        }),
      onProgress: (done, found) => {
        if (!json) deps.err(`${done} of ${found}\n`);
      },
    });
    const what = dryRun ? 'can be' : 'were';
    if (unreadable.length > 0)
      throw unreadableError(found, unreadable, ` and stay as they are; ${resealed} ${what} sealed anew`);
    return {
      json: { current_key: currentKeyId, dry_run: dryRun, found, resealed },
      text: `${resealed} of ${found} secrets and private keys ${what} sealed anew under key ${currentKeyId}.`,
    };
  });
}

function unreadableError(found: number, unreadable: readonly Unreadable[], others: string): Error {
  const named = unreadable.slice(0, UNREADABLE_NAMED).map(({ id, reason }) => `\n  ${id}: ${reason}`);
  const rest = unreadable.length - named.length;
  return new Error(
    `${unreadable.length} of ${found} secrets and private keys cannot be opened${others}.` +
      `${named.join('')}${rest > 0 ? `\n  and ${rest} more` : ''}`,
  );
}
