import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors';

/** For routes without a body: none, or an empty one of any type, else 400. Affects its own scope only. */
export function emptyBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    if (body.length === 0) done(null, undefined);
    else done(new ApiError('INVALID_REQUEST', 'The body must be empty.'), undefined);
  });
}
