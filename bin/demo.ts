import { resolve } from 'node:path';
import { NoStack, runDemo } from '../dev/demo';
import { readConfig } from '../runtime/config/config';
import { helped } from './main';

async function main(): Promise<void> {
  try {
    const dataDir = resolve(readConfig().DATA_DIR);
    const arrived = await runDemo({ dataDir, write: (text) => process.stdout.write(text) });
    if (!arrived) process.exitCode = 1;
  } catch (error) {
    process.stderr.write(`${error instanceof NoStack ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

const HELP = { usage: 'npm run demo', purpose: 'Shows the whole way on the stack that `npm start` runs.' };
if (!helped(HELP)) void main();
