import { resolve } from 'node:path';
import { runDemo } from '../dev/demo/run';
import { NoStack } from '../dev/demo/run';
import { readConfig } from '../runtime/config/config';
import { helped } from './main';

async function main(): Promise<void> {
  try {
    const outcome = await runDemo({
      dataDir: resolve(readConfig().DATA_DIR),
      write: (text) => process.stdout.write(text),
      now: Date.now,
    });
    if (outcome === 'missing') process.exitCode = 1;
  } catch (error) {
    process.stderr.write(`${error instanceof NoStack ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

const HELP = { usage: 'npm run demo', purpose: 'Shows the whole way on the stack that `npm start` runs.' };
if (!helped(HELP)) void main();
