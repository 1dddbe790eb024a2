import { Client, Connection } from '@temporalio/client';
import { SERVER_VERSION } from '../../dev/temporal-postgres/executables';
import { readConfig } from '../../runtime/config/config';
import { ensureNamespace } from '../../runtime/temporal/namespace';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import type { OwnTemporal } from './own-temporal';
import { openProductionTemporal } from './production-temporal';

/** A server that may be killed and started again. */
export interface KillableTemporal extends Pick<
  OwnTemporal,
  'address' | 'namespace' | 'client' | 'start' | 'kill' | 'close'
> {
  /** Further settings of a worker that is to reach it. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Prepares production's server, on Postgres with the files of deploy/temporal. It is built with Go where it is missing. */
export async function killableProductionTemporal(): Promise<KillableTemporal> {
  const server = await openProductionTemporal([SERVER_VERSION]);
  await server.updateSchema(SERVER_VERSION);
  const { namespace, connection: how } = temporalTarget(readConfig(server.environment));
  const connection = Connection.lazy(how);
  return {
    address: server.address,
    namespace,
    environment: server.environment,
    client: new Client({ connection, namespace }),
    async start() {
      server.start(SERVER_VERSION);
      await server.ready();
      await ensureNamespace(connection, { namespace, keepDays: 1 });
    },
    kill: async () => void (await server.stop('SIGKILL')),
    async close() {
      await connection.close();
      await server.close();
    },
  };
}
