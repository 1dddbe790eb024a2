import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callJson, NobodyThere } from '../json-call';
import type { StackInfo } from '../stack';

/** There is no stack to show anything on; the message says what to do. */
export class NoStack extends Error {
  override readonly name = 'NoStack';
}

/** What stack.json says of the stack that runs. @throws NoStack */
export async function runningStack(dataDir: string): Promise<StackInfo> {
  const file = join(dataDir, 'stack.json');
  const advice = 'Start it in another terminal with `npm start`, wait for its curl, and run this again.';
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) throw new NoStack(`The stack is not running (there is no ${file}). ${advice}`);
  const info = JSON.parse(text) as StackInfo;
  if (info.temporalAddress === null)
    throw new NoStack(
      'The stack runs without Temporal, so no webhook would arrive. Do what the warning of `npm start` says, and start it again.',
    );
  try {
    await callJson({ url: `${info.internalUrl}/health` });
  } catch (error) {
    if (!(error instanceof NobodyThere)) throw error;
    throw new NoStack(`The stack is not running (nobody answers at ${info.internalUrl}). ${advice}`);
  }
  return info;
}
