import { join } from 'node:path';
import { freePort } from '../../dev/ports';
import { startProgram } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { fileNeeds } from '../support/needs';

/** The scripts of deploy/postgres, run by the Postgres of this machine as its own account. */
fileNeeds('Postgres');

const SCRIPTS = join(__dirname, '../../deploy/postgres');

const SERVER = `
cd "$FOLDER"
PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH
export BACKUPS=$FOLDER/backups PGDATA=$FOLDER/data PGHOST=$FOLDER POSTGRES_HOST=$FOLDER PGUSER=postgres
mkdir -p backups/archive backups/base backups/dump backups/metrics
initdb --username=postgres --auth=trust >/dev/null
cat >>data/postgresql.conf <<END
port = $PGPORT
listen_addresses = ''
unix_socket_directories = '$FOLDER'
fsync = off
archive_mode = on
archive_command = 'BACKUPS=$BACKUPS bash $FOLDER/archive.sh %p %f'
END
start() {
  pg_ctl --wait --log=log start >/dev/null
  until [ "$(psql -Atc 'select pg_is_in_recovery()')" = f ]; do sleep 0.1; done
}
# Moments have the second, as an operator gives them.
happens() { psql -qd quotes -c "insert into happened values ('$1')"; sleep 1.1; }
moment() { date -u '+%Y-%m-%d %H:%M:%S UTC'; sleep 1.1; }
restored() {
  pg_ctl --wait stop >/dev/null
  bash restore.sh "$@" >/dev/null
  start
  echo "$(psql -Atd quotes -c "select string_agg(what, ' ' order by at) from happened")"
}
start
trap 'pg_ctl --mode=immediate stop >/dev/null' EXIT
psql -qc 'create database quotes'
psql -qd quotes -c 'create table happened (what text, at timestamptz default clock_timestamp())' -c 'create table backups (at timestamptz default now())'
`;

const MOMENTS = `
bash backup.sh >/dev/null
happens one; early=$(moment)
happens two; right=$(moment)
happens mistake
restored "$early"
happens meanwhile; second=$(moment); happens again
# A copy of the archive has other times.
touch backups/archive/*
restored "$right"
happens later; restored
restored "$second"
`;

const DAMAGE = `
bash backup.sh >/dev/null
happens one; psql -Atqc 'select pg_switch_wal()' >/dev/null
happens two; psql -Atqc 'select pg_switch_wal()' >/dev/null
happens three
pg_ctl --wait stop >/dev/null
damaged() {
  bash restore.sh >/dev/null
  ! pg_ctl --wait --log=damaged start >/dev/null 2>&1 || psql -Atd quotes -c "select string_agg(what, ' ' order by at) from happened"
  grep -o 'FATAL:  could not restore file "[^"]*' damaged | tail -n 1
}
newest=$(ls backups/archive/0*.gz | tail -n 1)
mv "$newest" whole; head -c 100 whole >"$newest"; damaged
mv backups/archive away; damaged
mv away backups/archive; mv whole "$newest"
mkdir disk; mv data disk; ln -s disk/data data
BACKUPS=backups PGDATA=data/ bash restore.sh >/dev/null; start
[ -L data ]
psql -Atd quotes -c "select string_agg(what, ' ' order by at) from happened"
`;

const NO_DUMP = `
psql -qc 'alter database quotes rename to other'
bash backup.sh 2>/dev/null || ls backups/base backups/dump
`;

async function run(scene: string) {
  const folder = runDirectory('restore');
  const own = process.getuid?.() === 0 ? 'chown -R postgres "$FOLDER"; exec runuser -u postgres --' : 'exec';
  const command = `cp ${SCRIPTS}/*.sh "$FOLDER"; ${own} bash -euc "$SCENE"`;
  const started = startProgram(['bash', '-euc', command], {
    env: { ...process.env, SCENE: SERVER + scene, FOLDER: folder, PGPORT: String(await freePort()) },
  });
  return [await started.ended, started.output()];
}

test('a restore goes to its moment, whatever other restore came after that moment', async () => {
  const said = ['one', 'one two', 'one two later', 'one meanwhile', ''];
  expect(await run(MOMENTS)).toEqual([0, said.join('\n')]);
});

test('a server does not open with half of what was archived, when the archive is damaged or away', async () => {
  const [ended, said] = await run(DAMAGE);
  expect(ended).toBe(0);
  expect(said).toMatch(
    /^FATAL: {2}could not restore file "0{7}1\w{16}\nFATAL: {2}could not restore file "[\w.]+\none two three\n$/,
  );
});

test('a backup that fails leaves nothing that fills the disk', async () => {
  expect(await run(NO_DUMP)).toEqual([0, 'backups/base:\n\nbackups/dump:\n']);
});
