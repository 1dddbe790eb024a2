import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import secureJson from 'secure-json-parse';
import { BODY_NOT_EMPTY, LONGEST_NAME, repeatedNames, type Validated } from '../contracts/validate';
import { ApiError, NOT_OF_JSON, refused } from './errors';

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
  throw new ApiError(result.violation);
}

/** Validates the query parameters of the routes of a scope. */
export function knownQuery(app: FastifyInstance, read: (query: unknown) => Validated<unknown>): void {
  app.addHook('onRequest', async (request) => {
    request.query = bodyOf(read, request.query);
  });
}

/** The routes of a scope accept no body, or an empty one of any type; else 400. */
export function emptyBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  // Fastify would refuse one that is not a type, such as an empty one.
  app.addHook('preParsing', ({ headers }, _reply, payload, done) => {
    delete headers['content-type'];
    done(null, payload);
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined);
    else done(new ApiError(BODY_NOT_EMPTY), undefined);
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
    else done(refused('INVALID_REQUEST', message));
  });
  app.removeAllContentTypeParsers();
  // The name is registered too, because Fastify caches only parsers of named types.
  const types = ['application/json', '*'];
  app.addContentTypeParser(types, { parseAs: 'buffer' }, (request: FastifyRequest, body: Buffer, done) => {
    try {
      if (!JSON_MEDIA_TYPE.test(request.headers['content-type'] ?? '')) throw NOT_OF_JSON;
      if (!isUtf8(body)) throw refused('INVALID_REQUEST', 'The body is not UTF-8: send JSON in UTF-8.');
      done(null, parse(body.toString()));
    } catch (error) {
      done(error as ApiError, undefined);
    }
  });
}

/** Writers of .NET put it there, where nobody sees it. */
const BYTE_ORDER_MARK = 'The body begins with a byte order mark (U+FEFF): send JSON in UTF-8 without one.';
const notJson = () => refused('INVALID_REQUEST', 'The body is not valid JSON.');

function parse(text: string): unknown {
  if (text === '') return undefined;
  // The parser below would ignore a byte order mark.
  if (text.charCodeAt(0) === 0xfeff) throw refused('INVALID_REQUEST', BYTE_ORDER_MARK);
  // The result is undefined for no JSON, and null for a refused name.
  const body: unknown = secureJson.safeParse(text);
  if (body === undefined) throw notJson();
  if (body === null && text.trim() !== 'null')
    throw refused('INVALID_REQUEST', 'No field may be named __proto__ or constructor.prototype.');
  const [name] = repeatedNames(text, 1)[0] ?? [];
  if (name !== undefined) {
    const field = String(name).slice(0, LONGEST_NAME);
    throw refused('INVALID_REQUEST', `The body names ${field} twice.`, field);
  }
  return body;
}
