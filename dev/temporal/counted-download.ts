import { Readable } from 'node:stream';
import type { Response } from 'undici';

const MB = 1_000_000;

/** The body of an answer; while it is read, a moving figure says how much has come. */
export function counted(
  answer: Pick<Response, 'body' | 'headers'>,
  onProgress: (message: string, moving?: boolean) => void,
): Readable {
  if (!answer.body) return Readable.from([]);
  const length = Number(answer.headers.get('content-length'));
  const total = length > 0 ? ` of ${Math.ceil(length / MB)}` : '';
  let bytes = 0;
  let told = 0;
  return Readable.fromWeb(answer.body).map((chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes - told >= MB || bytes === length) {
      told = bytes;
      onProgress(`${Math.floor(bytes / MB)}${total} MB`, true);
    }
    return chunk;
  });
}
