import type { FastifyInstance, FastifyRequest } from 'fastify';
import secureJson from 'secure-json-parse';
import { ApiError } from '../errors';

/** Largest body in bytes (design §3); the largest honest one is under 3 KiB. */
export const BODY_LIMIT_BYTES = 16 * 1024;

/** The media type itself; parameters such as charset follow after `;` and change nothing, as JSON is UTF-8. */
const JSON_MEDIA_TYPE = /^[ \t]*application\/json[ \t]*(;|$)/i;

/**
 * Reads bodies as JSON and nothing else, strictly: UTF-8 without a byte order mark, no duplicate keys at the top (two
 * amounts in one request have no right answer), no `__proto__`.
 */
export function jsonBody(app: FastifyInstance): void {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  app.removeAllContentTypeParsers();
  // Also by its name, though `*` covers it: fastify remembers which parser a type has only when it is a named one.
  const types = ['application/json', '*'];
  app.addContentTypeParser(types, { parseAs: 'buffer' }, (request: FastifyRequest, body: Buffer, done) => {
    try {
      if (!JSON_MEDIA_TYPE.test(request.headers['content-type'] ?? '')) {
        throw new ApiError('INVALID_REQUEST', 'Content-Type must be application/json.');
      }
      done(null, parse(utf8.decode(body)));
    } catch (error) {
      const refusal = error instanceof ApiError ? error : notJson(error);
      done(refusal, undefined);
    }
  });
}

function notJson(cause: unknown): ApiError {
  return new ApiError('INVALID_REQUEST', 'The body is not valid JSON.', undefined, { cause });
}

function parse(text: string): unknown {
  // The parser below would pass over a byte order mark.
  if (text.charCodeAt(0) === 0xfeff) throw new SyntaxError('byte order mark');
  const body: unknown = secureJson.parse(text, undefined, {
    protoAction: 'error',
    constructorAction: 'error',
  });
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
    // Counting is cheap; which name it is interests only when there are too many.
    if (countKeys(text) !== Object.keys(body).length) {
      const name = duplicateKey(text) ?? '';
      throw new ApiError('INVALID_REQUEST', 'The body names a field twice.', { field: name.slice(0, 64) });
    }
  }
  return body;
}

/** Number of top-level keys in the text of a JSON object (known to be valid), repeated ones included. */
function countKeys(text: string): number {
  let depth = 0;
  let colons = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === 0x22 /* " */) at = endOfString(text, at);
    else if (character === 0x3a /* : */ && depth === 1) colons += 1;
    else if (character === 0x7b /* { */ || character === 0x5b /* [ */) depth += 1;
    else if (character === 0x7d /* } */ || character === 0x5d /* ] */) depth -= 1;
  }
  return colons;
}

/** Where the string that opens at `start` closes: at the first quote after an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c /* \ */) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}

/** The first top-level key that a JSON object (known to be valid) holds twice, if any. One pass over the text. */
function duplicateKey(text: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  let expectsKey = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === 0x22 /* " */) {
      const start = at;
      at = endOfString(text, start);
      if (expectsKey) {
        const key = JSON.parse(text.slice(start, at + 1)) as string;
        if (seen.has(key)) return key;
        seen.add(key);
        expectsKey = false;
      }
    } else if (character === 0x7b /* { */ || character === 0x5b /* [ */) {
      depth += 1;
      expectsKey = depth === 1;
    } else if (character === 0x7d /* } */ || character === 0x5d /* ] */) {
      depth -= 1;
    } else if (character === 0x2c /* , */ && depth === 1) {
      expectsKey = true;
    }
  }
  return undefined;
}
