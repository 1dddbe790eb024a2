import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import secureJson from 'secure-json-parse';
import { LONGEST_NAME, readNoQuery, type Validated } from '../contracts/validate';
import { ApiError } from './errors';

/** Largest body in bytes. The largest valid one is under 3 KiB. */
export const BODY_LIMIT_BYTES = 16 * 1024;

/** Parameters such as charset follow after `;`, and are ignored because JSON is always UTF-8. */
const JSON_MEDIA_TYPE = /^[ \t]*application\/json[ \t]*(;|$)/i;

/**
 * The validated body or query.
 * @throws ApiError with the contract's code when it is invalid
 */
export function bodyOf<T>(validate: (body: unknown) => Validated<T>, body: unknown): T {
  const result = validate(body);
  if ('value' in result) return result.value;
  const { code, message, details } = result.violation;
  throw new ApiError(code, message, details);
}

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly readQuery?: (query: unknown) => Validated<unknown>;
  }
}

/** Refuses unknown query parameters of the routes of a scope, and validates the others. */
export function knownQuery(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    request.query = bodyOf(request.routeOptions.config.readQuery ?? readNoQuery, request.query);
  });
}

/** The routes of a scope accept no body, or an empty one of any type; else 400. */
export function emptyBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined);
    else done(new ApiError('INVALID_REQUEST', 'The body must be empty.'), undefined);
  });
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Reads bodies as strict JSON: UTF-8, uncompressed, without `__proto__`, and no name twice at the top. */
export function jsonBody(app: FastifyInstance): void {
  app.addHook('preParsing', ({ headers }, _reply, payload, done) => {
    const encoding = headers['content-encoding'];
    const message = 'Compressed bodies are not read: send the body without a Content-Encoding header.';
    if (encoding === undefined || encoding.trim().toLowerCase() === 'identity' || !hasBody(headers))
      done(null, payload);
    else done(new ApiError('INVALID_REQUEST', message));
  });
  app.removeAllContentTypeParsers();
  // The name is registered too, because Fastify caches only parsers of named types.
  const types = ['application/json', '*'];
  app.addContentTypeParser(types, { parseAs: 'buffer' }, (request: FastifyRequest, body: Buffer, done) => {
    try {
      if (!JSON_MEDIA_TYPE.test(request.headers['content-type'] ?? ''))
        throw new ApiError('INVALID_REQUEST', 'Content-Type must be application/json.');
      if (!isUtf8(body)) throw notJson();
      done(null, parse(body.toString()));
    } catch (error) {
      done(error as ApiError, undefined);
    }
  });
}

const notJson = () => new ApiError('INVALID_REQUEST', 'The body is not valid JSON.');

function parse(text: string): unknown {
  // The parser below would ignore a byte order mark.
  if (text.charCodeAt(0) === 0xfeff) throw notJson();
  // The result is undefined for no JSON, and null for a refused name.
  const body: unknown = secureJson.safeParse(text);
  if (body === undefined) throw notJson();
  if (body === null && text.trim() !== 'null')
    throw new ApiError('INVALID_REQUEST', 'No field may be named __proto__ or constructor.prototype.');
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
    const twice = duplicateKey(text, Object.keys(body).length);
    if (twice !== undefined) {
      const field = twice.slice(0, LONGEST_NAME);
      throw new ApiError('INVALID_REQUEST', `The body names ${field} twice.`, { field });
    }
  }
  return body;
}

// The position of the quote that ends a string: the first one after an even number of backslashes.
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c /* \ */) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}

// The first name that stands twice at the top, where `fields` names differ.
function duplicateKey(text: string, fields: number): string | undefined {
  const keys: string[] = [];
  let depth = 0;
  let string = '';
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === 0x22 /* " */) {
      const last = endOfString(text, at);
      string = text.slice(at, last + 1);
      at = last;
    } else if (character === 0x7b /* { */ || character === 0x5b /* [ */) depth += 1;
    else if (character === 0x7d /* } */ || character === 0x5d /* ] */) depth -= 1;
    // The string before a colon is a key.
    else if (character === 0x3a /* : */ && depth === 1) keys.push(string);
  }
  if (keys.length === fields) return undefined;
  const names = keys.map((key) => JSON.parse(key) as string);
  return names.find((name, at) => names.indexOf(name) < at);
}
