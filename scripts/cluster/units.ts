import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type UnitName = 'etcd' | 'patroni' | 'redis' | 'temporal' | 'api' | 'worker' | 'proxy';

const FOLDER = join(__dirname, '../../deploy/cluster/systemd');

/** What deploy/cluster/systemd says of a service, as far as it is followed here. */
export function readUnit(name: UnitName) {
  const text = readFileSync(join(FOLDER, `quotes-${name}.service`), 'utf8');
  const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1];
  const [user, command] = [value('User'), value('ExecStart')];
  if (user === undefined || command === undefined) throw new Error(`quotes-${name}.service lacks a line`);
  const [program = '', ...args] = command.split(' ');
  return {
    user,
    environmentFiles: [...text.matchAll(/^EnvironmentFile=(.*)$/gm)].map(([, file = '']) => file),
    // The Node that runs this.
    argv: [program === '/usr/bin/node' ? process.execPath : program, ...args],
    /** Before it is started again, in milliseconds. */
    restartMs: Number(value('RestartSec') ?? 0) * 1_000,
  };
}

/** Lines `NAME=value`, as systemd reads them when nothing is quoted. */
export function readEnvironment(file: string): Record<string, string> {
  const lines = readFileSync(file, 'utf8').split('\n');
  return Object.fromEntries(
    lines
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** The account of a service on this machine. In place of `quotes`, which an operator creates, `nobody` is used. */
export function accountOf(name: string): { user: number; group: number } {
  const line = execFileSync('getent', ['passwd', name === 'quotes' ? 'nobody' : name], { encoding: 'utf8' });
  const [, , user, group] = line.split(':');
  return { user: Number(user), group: Number(group) };
}
