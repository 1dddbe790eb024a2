import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { removeDirectory, temporaryDirectory } from '../../test/support/temporary-directory';

const root = join(__dirname, '../..');
/** Everything in the namespaces ends with its first process, and that with this one, however it ends. */
const ENTER = ['--pdeathsig', 'KILL', '--', 'unshare', '--net', '--mount', '--pid', '--fork', '--kill-child'];

/**
 * Runs a program of ours in namespaces of its own for network, mounts and processes, with a folder that is removed afterwards as its
 * first argument. Needs Linux and root.
 * @returns its exit code
 */
export async function runInside(program: string, args: readonly string[]): Promise<number> {
  if (process.getuid?.() !== 0) throw new Error('it makes namespaces: run it as root, on Linux');
  const directory = await temporaryDirectory('cluster');
  try {
    const node = [process.execPath, '--import', 'tsx', program, directory, ...args];
    // The first process of a process namespace has to collect orphans, which a shell does and Node does not.
    const child = spawn(
      'setpriv',
      [...ENTER, '--mount-proc', '--', 'sh', '-c', '"$@"; exit $?', 'sh', ...node],
      {
        cwd: root,
        stdio: 'inherit',
      },
    );
    // The program has its own from the terminal.
    process.on('SIGINT', () => undefined);
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGKILL'));
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => resolve(code ?? 1));
    });
  } finally {
    await removeDirectory(directory);
  }
}
