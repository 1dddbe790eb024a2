import { execFile } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newKeyRingText } from '../../testbed/notifications';
import { runDirectory } from '../../testbed/temporary-directory';
import { needs } from '../support/needs';

const root = join(__dirname, '../..');
const entryPoints = readdirSync(join(root, 'bin')).filter(
  (file) => file.endsWith('.ts') && file !== 'main.ts',
);

test.each(entryPoints)('%s answers --help, and does nothing else', async (file) => {
  const directory = runDirectory('entry-point');
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--import', join(root, 'node_modules/tsx/dist/loader.mjs'), join(root, 'bin', file), '--help'],
    { cwd: directory, env: { PATH: process.env['PATH'] } },
  );
  expect([stdout, stderr]).toEqual([expect.stringMatching(/^Usage: /), '']);
  expect(readdirSync(directory)).toEqual([]);
});

const run = (file: string, env: Record<string, string>) =>
  promisify(execFile)(process.execPath, ['--import', 'tsx', `bin/${file}`], {
    cwd: root,
    env: { PATH: process.env['PATH'], DATABASE_URL: 'postgres://a:b@127.0.0.1:1/quotes', ...env },
  });

test('a key that cannot be read and an authority that is none are named with their setting', async () => {
  await expect(run('api.ts', { TLS_CERT_FILE: 'LICENSE', TLS_KEY_FILE: 'README.md' })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^api: TLS_CERT_FILE \(LICENSE\) and TLS_KEY_FILE \(README\.md\): .+\n$/),
  });
  const settings = { WEBHOOK_KEYS: newKeyRingText(), WEBHOOK_CA_FILE: 'LICENSE' };
  await expect(run('worker.ts', settings)).rejects.toMatchObject({
    code: 1,
    stderr: 'worker: WEBHOOK_CA_FILE: LICENSE has no certificate in PEM.\n',
  });
});

needs('namespaces')('where a name has several addresses', () => {
  test('migrate says what each of them answered', async () => {
    const hosts = join(runDirectory('two-addresses'), 'hosts');
    writeFileSync(hosts, '::1 postgres.example\n127.0.0.1 postgres.example\n');
    const script = 'mount --bind "$1" /etc/hosts && exec "$2" --import tsx bin/migrate.ts';
    const run = promisify(execFile)(
      'unshare',
      ['--mount', 'sh', '-c', script, 'sh', hosts, process.execPath],
      {
        cwd: root,
        env: { PATH: process.env['PATH'], DATABASE_URL: 'postgres://a:b@postgres.example:1/quotes' },
      },
    );
    await expect(run).rejects.toMatchObject({
      stderr: expect.stringMatching(/^migrate: connect .+; connect .+\n$/),
    });
  });
});
