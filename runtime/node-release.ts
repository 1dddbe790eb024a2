import type { Logger } from 'pino';

/** The oldest major release of Node that gets security fixes; 20 got its last on 30 April 2026. */
const OLDEST_SUPPORTED = 22;

/** Warns once, at the start, when this process runs on a Node that gets no security fixes any more. */
export function warnOfOldNode(logger: Pick<Logger, 'warn'>, version: string): void {
  if (Number(version.split('.')[0]) >= OLDEST_SUPPORTED) return;
  logger.warn({ node: version }, 'this Node is out of support and gets no security fixes: use Node 24');
}
