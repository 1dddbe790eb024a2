import type { IncomingMessage } from 'node:http';

/** What is kept of an answer: enough for a person to see what went wrong. */
const KEPT_BYTES = 8 * 1_024;
/** Read to its end an answer leaves its connection usable; beyond this a new connection is cheaper. */
const READ_BYTES = 64 * 1_024;

/**
 * Reads what an answer says, for people. Never fails: what came until the connection broke, the time was up or the
 * signal aborted is what there is. Nothing is decompressed.
 * @returns at most 8 KiB as text without NUL, which Postgres cannot store.
 */
export function readAnswer(response: IncomingMessage, bodyMs: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const kept = Buffer.alloc(KEPT_BYTES);
    let keptLength = 0;
    let readLength = 0;
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve(toText(response, kept.subarray(0, keptLength)));
    };
    const stop = () => {
      response.destroy();
      finish();
    };
    const timer = setTimeout(stop, bodyMs);
    response.on('data', (chunk: Buffer) => {
      keptLength += chunk.copy(kept, keptLength);
      readLength += chunk.length;
      if (readLength > READ_BYTES) stop();
    });
    response.once('end', finish);
    response.once('close', finish);
    response.on('error', finish);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

function toText(response: IncomingMessage, bytes: Uint8Array): string {
  const encoding = response.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return '(compressed, though identity was asked for)';
  // As a stream, so that a character cut off at the end is left out.
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll('\0', '\uFFFD');
}
