import { execFileSync } from 'node:child_process';

interface Account {
  readonly user: number;
  readonly group: number;
}

/** Of a service on this machine. The account `quotes`, which an operator makes for our processes, is that of nobody here. */
export function accountOf(name: string): Account {
  const line = execFileSync('getent', ['passwd', name === 'quotes' ? 'nobody' : name], { encoding: 'utf8' });
  const [, , user, group] = line.split(':');
  return { user: Number(user), group: Number(group) };
}
