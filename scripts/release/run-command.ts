import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Surroundings {
  readonly cwd: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Runs a command, which prints on our own output. @throws when it does not end with 0. */
export async function runCommand(
  command: string,
  args: readonly string[],
  { cwd, environment }: Surroundings,
): Promise<void> {
  const child = spawn(command, args, { cwd, env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code ?? signal}`);
}
