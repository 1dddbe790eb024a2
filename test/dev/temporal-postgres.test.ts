import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { freeLowPorts } from '../../dev/ports';
import { SERVICES, writeServerConfig } from '../../dev/temporal-postgres/config';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

let directory: string;

beforeAll(async () => {
  directory = await temporaryDirectory('temporal-postgres');
});

afterAll(() => removeDirectory(directory));

test('the configuration names the databases, and keeps their password from other users', async () => {
  const ports = await freeLowPorts(2 * SERVICES.length);
  const postgresUrl = 'postgres://somebody:p%40ss@127.0.0.1:5555/postgres';
  const args = await writeServerConfig(directory, { postgresUrl, ports });
  expect(args.slice(0, 2)).toEqual(['--root', directory]);
  const file = join(directory, 'server.yaml');
  expect((await stat(file)).mode & 0o077).toBe(0);
  const config = JSON.parse(await readFile(file, 'utf8'));
  const login = {
    pluginName: 'postgres12_pgx',
    connectAddr: '127.0.0.1:5555',
    user: 'somebody',
    password: 'p@ss',
  };
  expect(config.persistence.datastores).toMatchObject({
    history: { sql: { ...login, databaseName: 'temporal' } },
    visibility: { sql: { ...login, databaseName: 'temporal_visibility' } },
  });
  expect(config.services.frontend.rpc).toMatchObject({ grpcPort: ports[0], bindOnLocalHost: true });
  const dynamic = JSON.parse(await readFile(config.dynamicConfigClient.filepath, 'utf8'));
  expect(dynamic).toMatchObject({
    'matching.numTaskqueueReadPartitions': [{ value: 1 }],
    'matching.numTaskqueueWritePartitions': [{ value: 1 }],
  });
});
