import type { Command } from 'commander';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { existingEndpoint, findEndpoint, type WebhookEndpoint } from '../db/endpoints/endpoints';
import { environmentOption, idOf } from './arguments';
import type { Call } from './call';

/** Lets a command name an endpoint by its id, or by the partner and environment that it is the one of. */
export function endpointArgument(command: Command): Command {
  return command
    .argument('[endpoint-id]', 'the endpoint; or name it by --partner and --environment', idOf('endpoint'))
    .option('--partner <partner>', 'whose endpoint', idOf('partner'))
    .addOption(environmentOption('which of its endpoints'));
}

/**
 * The endpoint that a command named.
 * @throws Refused when there is none, or it was named in neither way or in both.
 */
export async function namedEndpoint(
  db: DbOrTransaction,
  call: Call,
  endpointId: string | undefined,
): Promise<WebhookEndpoint> {
  const { partner: partnerId, environment } = call.options;
  if (endpointId !== undefined && partnerId === undefined && environment === undefined) {
    return existingEndpoint(db, endpointId);
  }
  if (endpointId !== undefined || partnerId === undefined || environment === undefined) {
    throw new Refused('invalid', 'Name the endpoint by its id, or by --partner and --environment.');
  }
  const found = await findEndpoint(db, partnerId, environment);
  if (found === null) throw new Refused('not_found', `${partnerId} has no ${environment} endpoint.`);
  return found;
}
