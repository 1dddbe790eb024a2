import { sleep } from '@temporalio/workflow';

/** For the tests of the test support. */
export async function sleeper(ms: number): Promise<string> {
  await sleep(ms);
  return `slept ${ms} ms`;
}
