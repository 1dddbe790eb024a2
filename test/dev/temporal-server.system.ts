import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTemporal, startTemporal } from '../../dev/temporal';
import { freePort } from '../../dev/ports';
import { fileNeeds } from '../support/needs';
import { withTemporal } from '../../testbed/own-temporal';
import { runDirectory } from '../../testbed/temporary-directory';

fileNeeds('Temporal', 'iproute');

const dataDir = join(runDirectory('temporal server'), 'data of mine');
let executable: string;
let port: number;

beforeAll(async () => {
  executable = await findTemporal();
  port = await freePort();
}, 1_200_000);

async function start(progress: string[] = []) {
  const onProgress = (text: string) => void progress.push(text);
  return startTemporal({ executable, dataDir, port, uiPort: null, sync: false, onProgress });
}

test('starts anew where another version has written the file, and says so', async () => {
  const first = await start();
  const workflowId = 'of-the-old-version';
  await withTemporal(first, ({ workflow }) =>
    workflow.start('nobodyRunsIt', { workflowId, taskQueue: 'nobody-polls-it' }),
  );
  await first.stop();
  await writeFile(join(dataDir, 'version'), 'temporal version 1.4.0 (Server 1.28.0, UI 2.38.3)\n');
  const progress: string[] = [];
  const second = await start(progress);
  expect(progress).toEqual([expect.stringMatching(/was temporal version 1\.4\.0.*is temporal version/)]);
  const { namespace } = second;
  const list = () =>
    withTemporal(second, ({ workflowService }) => workflowService.listWorkflowExecutions({ namespace }));
  expect((await list()).executions).toEqual([]);
  await second.stop();
  progress.length = 0;
  await (await start(progress)).stop();
  expect(progress).toEqual([]);
});

test('its page and its API over HTTP answer localhost alone', async () => {
  const uiPort = await freePort();
  const server = await startTemporal({ executable, dataDir, port, uiPort, sync: false });
  try {
    const ask = (at: string, host: string, path = '/') =>
      new Promise<number | undefined>((resolve, reject) => {
        const [name = '', number = ''] = at.split(':');
        const call = request({ host: name, port: number, path, headers: { host } }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        call.on('error', reject).end();
      });
    const page = `127.0.0.1:${uiPort}`;
    const path = `/api/v1/namespaces/${server.namespace}`;
    for (const host of [`localhost:${uiPort}`, page]) expect(await ask(page, host)).toBe(200);
    expect(await ask(page, `localhost:${uiPort}`, path)).toBe(200);
    for (const host of ['evil.example', `evil.example:${uiPort}`, 'localhost.evil.example', '[::1]:1'])
      expect([host, await ask(page, host), await ask(page, host, path)]).toEqual([host, 421, 421]);
    // Whatever else it listens on: the API over HTTP, metrics and the page itself.
    const places = await listensOn(server.pid);
    expect(places.length).toBeGreaterThan(2);
    const answers = places
      .filter((place) => place.startsWith('127.0.0.1:') || place.startsWith('0.0.0.0:'))
      .map((place) =>
        ask(place.replace('0.0.0.0', '127.0.0.1'), 'evil.example', path).catch(() => undefined),
      );
    expect(await Promise.all(answers)).not.toContain(200);
  } finally {
    await server.stop();
  }
  await expect(fetch(`http://127.0.0.1:${uiPort}/`)).rejects.toThrow('fetch failed');
});

/** The IPv4 addresses on which a process accepts connections. */
async function listensOn(pid: number): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ss', ['-H', '-4', '-l', '-t', '-n', '-p']);
  return stdout
    .split('\n')
    .filter((line) => line.includes(`pid=${pid},`))
    .map((line) => line.trim().split(/\s+/)[3] ?? '');
}
