import type { Command } from 'commander';
import {
  issueServiceKey,
  listServiceKeys,
  revokeServiceKey,
  rotateServiceKey,
  setServiceKeyState,
} from '../db/keys/service-keys';
import type { KeyEnvironment } from '../db/keys/key';
import { duration, environmentOption, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { changeAndLog } from './change-and-log';
import { addKeyLifecycle } from './key-lifecycle';
import { issuedAnswer } from './key-view';
import { listed, snakeCased } from './output';

const EXAMPLES = `
Examples:
  ops service-keys create --name 'Lender A gateway' --lender lender_a --environment live
  ops service-keys rotate svk_01K… --overlap 24h     the old key works for another 24 hours
  ops service-keys revoke svk_01K…                   answers 401 at once, for good`;

interface CreateOptions {
  readonly name: string;
  readonly lender: string;
  readonly environment: KeyEnvironment;
  readonly expiresIn?: number;
}

/** `ops service-keys …` */
export function addServiceKeyCommands(program: Command, deps: OpsDeps): void {
  const keys = program
    .command('service-keys')
    .description(
      'Keys of the internal listener, for lender integrations: each for one lender and one environment.',
    )
    .addHelpText('after', EXAMPLES);

  const create = keys
    .command('create')
    .description('Issue a service key. It is shown once.')
    .requiredOption('--name <name>', 'who will use it')
    .requiredOption('--lender <lender>', 'the lender whose applications it is for', idOf('lender'))
    .addOption(environmentOption('of the applications it is for, and of their quotes').makeOptionMandatory())
    .option('--expires-in <duration>', 'life of the key, such as 90d; default: no end', duration);
  handle<CreateOptions>(create, deps, async (call) => {
    const { name, lender, environment, expiresIn: expiresInSeconds = null } = call.options;
    const issued = await changeAndLog(call, 'service-keys.create', async (tx, log) => {
      const done = await issueServiceKey(tx, { name, lender, environment, expiresInSeconds });
      const { keyId, expiresAt } = done.summary;
      const details = { name: done.summary.name, lender, environment, expires_at: expiresAt };
      await log(keyId, details);
      return done;
    });
    const { summary } = issued;
    const said = `Issued service key ${summary.keyId} to ${summary.name}, for ${lender} in ${environment}.`;
    return issuedAnswer(issued, said);
  });

  const list = keys.command('list').description('Service keys, without the keys themselves.');
  handle(list, deps, async ({ db }) => {
    return listed(await listServiceKeys(db), snakeCased, {
      key: 'key_id',
      name: 'name',
      lender: 'lender',
      environment: 'environment',
      'ends in': 'last_four',
      state: ({ state, expired }) => (state === 'active' && expired ? 'expired' : state),
      expires: 'expires_at',
      created: 'created_at',
      'replaced by': 'replaced_by',
    });
  });

  addKeyLifecycle(keys, deps, {
    noun: 'service-keys',
    id: 'serviceKey',
    changes: { rotate: rotateServiceKey, revoke: revokeServiceKey, setState: setServiceKeyState },
    owner: ({ name }) => ` of ${name}`,
    details: ({ name, lender, environment }) => ({ name, lender, environment }),
  });
}
