import { Context } from '@temporalio/activity';

/** Well under the heartbeat timeout of the workflow (10 s), which is how soon a dead worker is noticed. */
const HEARTBEAT_MS = 2_500;

/** Tells Temporal that this process lives, as long as the task runs. */
export async function withHeartbeat<T>(task: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await task();
  } finally {
    clearInterval(timer);
  }
}
