/**
 * Rehearses docker-compose.yml on a machine without a container engine: every command in it, in its order, with its
 * environment, names, addresses, users and read-only roots (scripts/rehearsal), on Debian's own Postgres, Redis and HAProxy and a
 * Temporal built with Go. Then a quote and a test webhook through the proxy, by production's rules, and a stop.
 *
 *   npx tsx scripts/rehearse-production.ts    (Linux, root; packages postgresql, redis-server, haproxy, netcat-openbsd)
 *
 * Not rehearsed: building the image (its commands are run here), limits of memory and CPU, published ports, Temporal's web page.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findTemporalServer } from '../dev/temporal-postgres/executables';
import { rehearse } from './rehearsal/rehearse';
import { stageImage } from './rehearsal/stage';

const root = join(__dirname, '..');

async function prepare(): Promise<number> {
  if (process.getuid?.() !== 0) throw new Error('it makes namespaces: run it as root');
  const directory = mkdtempSync(join(tmpdir(), 'rehearsal-'));
  // Services run as users of their own.
  execFileSync('chmod', ['755', directory]);
  try {
    const executables = await findTemporalServer({
      toolsDir: process.env['TOOLS_DIR'],
      onProgress: console.log,
    });
    const temporal = join(directory, 'temporal');
    mkdirSync(temporal);
    execFileSync('cp', [executables.server, join(temporal, 'temporal-server')]);
    execFileSync('cp', [executables.sqlTool, join(temporal, 'temporal-sql-tool')]);
    const given = process.env['REHEARSAL_APP'];
    if (given === undefined) stageImage(root, directory);
    else symlinkSync(given, join(directory, 'app'));
    const { status } = spawnSync(
      'unshare',
      ['--net', '--mount', '--', process.execPath, '--import', 'tsx', __filename, directory],
      { cwd: root, stdio: 'inherit' },
    );
    return status ?? 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const [directory] = process.argv.slice(2);
const work =
  directory === undefined
    ? prepare()
    : rehearse({ root, directory, postgresBin: dirname(newestInitdb()) }).then(() => 0);
work.then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);

function newestInitdb(): string {
  const found = execFileSync('sh', ['-c', 'ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -1']);
  return found.toString().trim();
}
