import type { Logger } from 'pino';

/** How often a warning that goes on is repeated, in milliseconds. */
const REPEATED_EVERY_MS = 60_000;

/**
 * A logger of warnings that come again and again while something is away: the first of each message is logged at once, then one a minute
 * with the number of those that were left out. Figures in a message do not make it another one.
 */
export function repeatedWarnings(logger: Pick<Logger, 'warn'>) {
  const silent = new Map<string, { leftOut: number; last: readonly [details: object, message: string] }>();

  function warn(details: object, message: string): void {
    const name = message.replaceAll(/\d+/g, 'N');
    const known = silent.get(name);
    if (known !== undefined) {
      known.leftOut += 1;
      known.last = [details, message];
      return;
    }
    logger.warn(details, message);
    silent.set(name, { leftOut: 0, last: [details, message] });
    const timer = setInterval(() => {
      const { leftOut = 0, last } = silent.get(name) ?? {};
      if (leftOut === 0 || last === undefined) {
        clearInterval(timer);
        silent.delete(name);
        return;
      }
      silent.set(name, { leftOut: 0, last });
      logger.warn({ ...last[0], leftOut }, last[1]);
    }, REPEATED_EVERY_MS).unref();
  }
  return { warn };
}
