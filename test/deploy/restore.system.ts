import { join } from 'node:path';
import { freePort } from '../../dev/ports';
import { startProgram } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { fileNeeds } from '../support/needs';

/** The scripts of deploy/postgres, run by the Postgres of this machine as its own account. */
fileNeeds('Postgres');

const SCRIPTS = join(__dirname, '../../deploy/postgres');

const SCENE = `
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

test('a restore goes to its moment, whatever other restore came after that moment', async () => {
  const folder = runDirectory('restore');
  const own = process.getuid?.() === 0 ? 'chown -R postgres "$FOLDER"; exec runuser -u postgres --' : 'exec';
  const run = startProgram(['bash', '-euc', `cp ${SCRIPTS}/*.sh "$FOLDER"; ${own} bash -euc "$SCENE"`], {
    env: { ...process.env, SCENE, FOLDER: folder, PGPORT: String(await freePort()) },
  });
  expect([await run.ended, run.output()]).toEqual([
    0,
    ['one', 'one two', 'one two later', 'one meanwhile', ''].join('\n'),
  ]);
});
