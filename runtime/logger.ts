import pino, { type DestinationStream, type Logger } from 'pino';
import type { Config } from './config';

/** Paths that may hold a key or a cookie, whatever logs them. */
const REDACTED = [
  '*.authorization',
  '*.Authorization',
  'headers.authorization',
  'req.headers',
  'request.headers',
];

/**
 * JSON lines on standard output, written in the background: a reader that stalls must not stall requests. At a stop
 * the buffer is flushed.
 */
export function createLogger(config: Pick<Config, 'LOG_LEVEL'>, destination?: DestinationStream): Logger {
  return pino(
    {
      level: config.LOG_LEVEL,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: REDACTED, censor: '[redacted]' },
    },
    destination ?? pino.destination({ dest: 1, sync: false, maxLength: 1024 * 1024 }),
  );
}
