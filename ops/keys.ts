import type { Command } from 'commander';
import { issueKey, revokeKey, rotateKey, setKeyState, listKeys } from '../db/keys/api-keys';
import type { KeyEnvironment } from '../db/keys/key';
import { duration, environmentOption, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { addKeyLifecycle } from './key-lifecycle';
import { issuedAnswer, keyStatus } from './key-view';
import { listed, snakeCased } from './output';
import { inPages, paged, type Page } from './paging';

const EXAMPLES = `
Examples:
  ops keys issue --partner P100001 --environment live
  ops keys issue --partner P100001 --environment sandbox --expires-in 90d
  ops keys rotate key_01K… --overlap 24h      the old key works for another 24 hours
  ops keys revoke key_01K…                    answers 401 within a second, for good`;

interface IssueOptions {
  readonly partner: string;
  readonly environment: KeyEnvironment;
  readonly expiresIn?: number;
}

/** `ops keys …` */
export function addKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = program.command('keys').description('API keys of partners.').addHelpText('after', EXAMPLES);

  const issue = keys
    .command('issue')
    .description('Issue a key. It is shown once.')
    .requiredOption('--partner <partner>', 'partner that will own it', idOf('partner'))
    .addOption(environmentOption('where it works').makeOptionMandatory())
    .option('--expires-in <duration>', 'life of the key, such as 90d; default: no end', duration);
  handle<IssueOptions>(issue, deps, async (call) => {
    const { partner: partnerId, environment, expiresIn: expiresInSeconds = null } = call.options;
    const issued = await changeAndLog(call, 'keys.issue', async (tx, log) => {
      const done = await issueKey(tx, { partnerId, environment, expiresInSeconds });
      const details = { partner_id: partnerId, environment, expires_at: done.summary.expiresAt };
      await log(done.summary.keyId, details);
      return done;
    });
    return issuedAnswer(issued, `Issued ${environment} key ${issued.summary.keyId} to ${partnerId}.`);
  });

  const list = keys
    .command('list')
    .description('Keys, without the keys themselves.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'));
  handle<Page>(inPages(list, 'key', { byDefault: 200 }), deps, async (call) => {
    const { partner: partnerId, after, limit } = call.options;
    const found = await listKeys(call.db, { partnerId, after, limit });
    const answer = listed(found, snakeCased, {
      key: 'key_id',
      partner: 'partner_id',
      environment: 'environment',
      'ends in': 'last_four',
      state: keyStatus,
      expires: 'expires_at',
      created: 'created_at',
      'replaced by': 'replaced_by',
    });
    return paged(call, answer, found, ({ keyId }) => keyId);
  });

  addKeyLifecycle(keys, deps, {
    noun: 'keys',
    id: 'key',
    changes: { rotate: rotateKey, revoke: revokeKey, setState: setKeyState },
    owner: ({ partnerId }) => ` of ${partnerId}`,
    details: ({ partnerId }) => ({ partner_id: partnerId }),
  });
}
