import type { Command } from 'commander';
import { appendChange } from '../db/audit/change-log';
import { checkSecrets, type Unreadable, resealSecrets, type ResealReport } from '../db/endpoints/sealed-rows';
import { handle, type OpsDeps } from './call';

const EXAMPLES = `
Examples:
  ops secrets check                   whether WEBHOOK_KEYS opens all of them: after a restore, for one
  ops secrets reencrypt --dry-run     counts, and opens those secrets to see that they can be
  ops secrets reencrypt               after a new key was put in front of WEBHOOK_KEYS`;

/** Enough to start looking. */
const UNREADABLE_NAMED = 10;

/** `ops secrets …` */
export function addSecretCommands(program: Command, deps: OpsDeps): void {
  const secrets = program
    .command('secrets')
    .description('Webhook secrets and private keys at rest, under the keys of WEBHOOK_KEYS.')
    .addHelpText('after', EXAMPLES);

  const check = secrets
    .command('check')
    .description(
      'Open every secret and private key, and change nothing. Exit code 1 when one cannot be opened.',
    );
  handle(check, deps, async ({ db }) => {
    const { found, byKey, unreadable } = await checkSecrets(db, deps.keyRing());
    if (unreadable.length > 0)
      throw new Error(
        `${unreadable.length} of ${found} secrets and private keys cannot be opened.\n${namesOf(unreadable)}`,
      );
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
  handle(reencrypt, deps, async ({ db, options }) => {
    const keyRing = deps.keyRing();
    const { currentKeyId } = keyRing;
    const { dryRun = false } = options;
    const report = await resealSecrets(db, {
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
        if (!options.json) deps.err(`${done} of ${found}\n`);
      },
    });
    if (report.unreadable.length > 0) throw unreadable(report, dryRun);
    const { found, resealed } = report;
    const what = `${resealed} of ${found} secrets and private keys ${dryRun ? 'can be' : 'were'}`;
    return {
      json: { current_key: currentKeyId, dry_run: dryRun, found, resealed },
      text: `${what} sealed anew under key ${currentKeyId}.`,
    };
  });
}

function unreadable({ found, resealed, unreadable }: ResealReport, dryRun: boolean): Error {
  return new Error(
    `${unreadable.length} of ${found} secrets and private keys cannot be opened and stay as they are; ` +
      `${resealed} ${dryRun ? 'can be' : 'were'} sealed anew.\n${namesOf(unreadable)}`,
  );
}

function namesOf(unreadable: readonly Unreadable[]): string {
  const named = unreadable.slice(0, UNREADABLE_NAMED).map(({ id, reason }) => `  ${id}: ${reason}`);
  const rest = unreadable.length - named.length;
  return [...named, ...(rest > 0 ? [`  and ${rest} more`] : [])].join('\n');
}
