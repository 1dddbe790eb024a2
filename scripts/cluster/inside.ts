import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { findTemporalServer } from '../../dev/temporal-postgres/executables';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';

/** Everything in the namespaces ends with its first process, and that with this one, however it ends. */
const ENTER = ['--pdeathsig', 'KILL', '--', 'unshare', '--net', '--mount', '--pid', '--fork', '--kill-child'];

/**
 * Runs `work` in namespaces of its own for network, mounts and processes, and ends this process with its exit code. Outside of them it
 * starts this program again inside, with a folder as its first argument, which it removes afterwards. Needs Linux and root.
 * @param directory that folder, when this is the inside
 */
export function inNamespaces(
  directory: string | undefined,
  work: (directory: string) => Promise<number>,
): void {
  const done = directory === undefined ? runInside() : work(directory);
  done.then(
    (code) => process.exit(code),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
}

async function runInside(): Promise<number> {
  if (process.getuid?.() !== 0) throw new Error('it makes namespaces: run it as root, on Linux');
  // The namespaces have no way to a registry.
  await findTemporalServer({ onProgress: console.error });
  const directory = await temporaryDirectory('cluster');
  try {
    const [node, program = '', ...args] = process.argv;
    const again = [node ?? '', '--import', 'tsx', program, directory, ...args];
    // The first process of a process namespace has to collect orphans, which a shell does and Node does not.
    const shell = ['--mount-proc', '--', 'sh', '-c', '"$@"; exit $?', 'sh'];
    const cwd = join(__dirname, '../..');
    const child = spawn('setpriv', [...ENTER, ...shell, ...again], { cwd, stdio: 'inherit' });
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
