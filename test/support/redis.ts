import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { startWatchdog } from './watchdog';

/** A real redis-server of one's own: loopback, nothing kept on disk. */
export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Orderly end. */
  stop(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** Again on the same port, empty; after stop or kill. */
  start(): Promise<void>;
  /** SIGSTOP: connections stay open, and nothing answers. */
  freeze(): void;
  unfreeze(): void;
}

/** @throws when `redis-server` is not installed. */
export async function startRedis(): Promise<TestRedis> {
  const port = await freePort();
  let running = await launch(port);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    stop: () => running.end('SIGTERM'),
    kill: () => running.end('SIGKILL'),
    start: async () => {
      running = await launch(port);
    },
    freeze: () => void running.child.kill('SIGSTOP'),
    unfreeze: () => void running.child.kill('SIGCONT'),
  };
}

async function launch(port: number) {
  const directory = await temporaryDirectory('redis');
  const dismissWatchdog = startWatchdog(directory);
  const options = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--set-proc-title',
    'no',
    '--appendonly',
    'no',
    '--dir',
    directory,
  ];
  const child = spawn('redis-server', options, { detached: true, stdio: 'ignore' });
  let failure: NodeJS.ErrnoException | undefined;
  child.once('error', (error) => (failure = error));
  child.unref();
  while (!(await answers(port))) {
    if (failure?.code === 'ENOENT')
      throw new Error('redis-server is not installed: apt-get install redis-server (.ci/run does it)');
    if (failure || child.exitCode !== null)
      throw failure ?? new Error(`redis-server ended with ${child.exitCode}`);
    await sleep(20);
  }
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.ref();
      child.kill(signal);
      child.kill('SIGCONT');
      await exited;
    }
    await removeDirectory(directory);
    dismissWatchdog();
  };
  return { child, end };
}

async function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.once('data', (data) => {
      resolve(data.toString().startsWith('+PONG'));
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
  });
}
