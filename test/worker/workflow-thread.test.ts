import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Runs code in a thread of a process that was started as a worker is, and returns what it posts. */
function inThread(code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pfqs-thread-'));
  try {
    const file = join(folder, 'thread.cjs');
    writeFileSync(file, code);
    const main = `new (require('node:worker_threads').Worker)(${JSON.stringify(file)}).on('message', (text) => console.log(text))`;
    const preload = ['--require', join(__dirname, '../../worker/workflow-thread.cjs')];
    return execFileSync(process.execPath, [...preload, '-e', main], { encoding: 'utf8' }).trim();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('in threads of the worker no time limit ends a script, and all else of a run is as it was', () => {
  const code = `
    const vm = require('node:vm');
    const context = vm.createContext({ result: 0 });
    const busy = new vm.Script('for (const until = Date.now() + 200; Date.now() < until; ) result += 1; result > 0 && "ran to its end"');
    require('node:worker_threads').parentPort.postMessage(busy.runInContext(context, { timeout: 20, displayErrors: true }));`;
  expect(inThread(code)).toBe('ran to its end');
});
