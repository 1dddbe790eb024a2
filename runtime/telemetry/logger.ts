import pino, { type DestinationStream, type Logger } from 'pino';
import { errorFacts } from '../../domain/error-facts';
import type { Config } from '../config/config';

const REDACTED = [
  '*.authorization',
  '*.Authorization',
  'headers.authorization',
  'req.headers',
  'request.headers',
];

/** Bytes collected before a write, about three hundred requests, and the largest write. */
const WRITE_BYTES = 64_000;
const MOST_WRITE_BYTES = 64 * 1024;
/** Longest that a line waits for others, in milliseconds. */
const FLUSH_MS = 100;

let stampedMs = 0;
let stamp = '';

/** The time of a line, `,"time":"2026-11-21T15:04:05.678Z"`, made once a millisecond. */
function timestamp(): string {
  const now = Date.now();
  if (now !== stampedMs) {
    stampedMs = now;
    stamp = `,"time":"${new Date(now).toISOString()}"`;
  }
  return stamp;
}

/**
 * JSON lines on standard output, written in the background so that a stalled reader stalls no request. Of
 * an `err` only the facts are written.
 */
export function createLogger(config: Pick<Config, 'LOG_LEVEL'>, destination?: DestinationStream): Logger {
  return pino(
    {
      level: config.LOG_LEVEL,
      base: null,
      timestamp,
      serializers: { err: errorFacts },
      redact: { paths: REDACTED, censor: '[redacted]' },
    },
    destination ?? logTo(STANDARD_OUTPUT),
  );
}

const STANDARD_OUTPUT = 1;

/** Longest wait for a blocked reader after a fatal line and at the end, in milliseconds. */
const LONGEST_FLUSH_MS = 1_000;

/**
 * A destination of log lines. While a write fails, as on a full disk, up to 1 MiB of lines wait for the next try and
 * others are lost; the process goes on.
 * @param dest file descriptor, or a file, whose folder is made
 */
export function logTo(dest: number | string) {
  let retryUntilMs = Number.POSITIVE_INFINITY;
  let failing = false;
  const output = pino.destination({
    dest,
    mkdir: true,
    sync: false,
    maxLength: 1024 * 1024,
    minLength: WRITE_BYTES,
    maxWrite: MOST_WRITE_BYTES,
    periodicFlush: FLUSH_MS,
    contentMode: 'buffer',
    retryEAGAIN: () => performance.now() < retryUntilMs,
  });
  output.on('write', () => (failing = false));
  // Without a listener the error would end the process.
  output.on('error', () => (failing = true));
  // pino joins and measures waiting text at every line, but only counts the length of bytes.
  const write = output.write.bind(output) as unknown as (line: Buffer) => boolean;
  output.write = (line: string) => write(Buffer.from(line));
  const flushSync = output.flushSync.bind(output);
  output.flushSync = () => {
    // sonic-boom 4.2.1 would repeat a write that fails, and nothing else would happen in this process until there is room.
    if (failing) return;
    // Reading this property opens it: from then on a write into a full pipe fails, and no longer waits for the reader.
    void process.stdout;
    retryUntilMs = performance.now() + LONGEST_FLUSH_MS;
    try {
      flushSync();
    } catch {
      // Lines that the reader did not take in time are lost.
    } finally {
      retryUntilMs = Number.POSITIVE_INFINITY;
    }
  };
  return output;
}

/** Logs a repeated warning or error at once, then once a minute. Messages that differ only in figures are the same. */
export function repeatedWarnings(logger: Pick<Logger, 'warn' | 'error'>, everyMs = 60_000) {
  const silent = new Map<string, { leftOut: number; last: readonly [details: object, message: string] }>();

  const say =
    (level: 'warn' | 'error') =>
    (details: object, message: string): void => {
      const name = message.replaceAll(/\d+/g, 'N');
      const known = silent.get(name);
      if (known !== undefined) {
        known.leftOut += 1;
        known.last = [details, message];
        return;
      }
      logger[level](details, message);
      silent.set(name, { leftOut: 0, last: [details, message] });
      const timer = setInterval(() => {
        const { leftOut = 0, last } = silent.get(name) ?? {};
        if (leftOut === 0 || last === undefined) {
          clearInterval(timer);
          silent.delete(name);
          return;
        }
        silent.set(name, { leftOut: 0, last });
        logger[level]({ ...last[0], leftOut }, last[1]);
      }, everyMs).unref();
    };
  return { warn: say('warn'), error: say('error') };
}
