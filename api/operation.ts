import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod } from 'fastify';
import { z } from 'zod';
import type { AnyErrorCode } from '../contracts/errors';
import { ID_PATTERNS, type Examples } from '../contracts/fields';
import { queryValidator, type RequestBody } from '../contracts/validate';
import { emptyBody, knownQuery } from './body';
import { refused } from './errors';

/** A call as the OpenAPI document describes it, and as it is checked. */
interface Description {
  /** Method and path; a name in braces is an id of ID_PATTERNS. */
  readonly call: `${'GET' | 'POST'} /${string}`;
  /** Its name in generated clients. */
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** Live keys do not see it. */
  readonly sandboxOnly?: true;
  /** An id of another form than ID_PATTERNS has reaches the handler; by default there is no such path. */
  readonly anyId?: true;
  /** Its parameters, and no others; `ignored`: none is looked at. */
  readonly query?: z.ZodObject | 'ignored';
  /** A POST without it takes none. */
  readonly body?: RequestBody;
  /** Its successes, by status. */
  readonly answers: Readonly<Record<number, readonly [what: string, schema: z.ZodType, examples?: Examples]>>;
  /** Codes that it can be refused with besides those of every call and of its `wrong`. */
  readonly codes?: readonly AnyErrorCode[];
  /** Parameters, or fields in place of those of the body's first example, that are refused with 400: shown with their answers. */
  readonly wrong?: readonly Readonly<Record<string, unknown>>[];
}

export interface Operation<Deps> extends Description {
  /** Makes the handler, once for a listener. */
  readonly handler: (deps: Deps) => RouteHandlerMethod;
}

type Names<Path> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

/** Gives the handler's request the types of its path and query. */
export function operation<
  Deps,
  const Call extends Description['call'],
  Query extends z.ZodObject = z.ZodObject<z.ZodRawShape>,
>(
  described: Omit<Description, 'call' | 'query'> & {
    readonly call: Call;
    readonly query?: Query | 'ignored';
    readonly handler: (
      deps: Deps,
    ) => (
      request: FastifyRequest<{ Params: Record<Names<Call>, string>; Querystring: z.output<Query> }>,
      reply: FastifyReply,
    ) => Promise<unknown>;
  },
): Operation<Deps> {
  return described as unknown as Operation<Deps>;
}

export const methodAndPath = ({ call }: Pick<Description, 'call'>) =>
  call.split(' ') as ['GET' | 'POST', string];

/** Adds the routes of operations. Each is checked as it is described, in the order of `docs/architecture.md`. */
export function serve<Deps>(app: FastifyInstance, operations: readonly Operation<Deps>[], deps: Deps): void {
  for (const one of operations)
    void app.register(async (scope) => {
      const [method, path] = methodAndPath(one);
      if (one.sandboxOnly) sandboxKeysOnly(scope);
      if (one.query !== 'ignored') knownQuery(scope, queryValidator(one.query ?? z.strictObject({})));
      if (method === 'POST' && one.body === undefined) emptyBody(scope);
      const url = path.replaceAll(/\{(\w+)\}/g, (_, name: keyof typeof ID_PATTERNS) =>
        one.anyId ? `:${name}` : `:${name}(^${ID_PATTERNS[name]}$)`,
      );
      scope.route({ method, url, config: { routeName: path }, handler: one.handler(deps) });
    });
}

function sandboxKeysOnly(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ caller, method }) => {
    if (caller.environment !== 'sandbox') throw refused('NOT_FOUND', method);
  });
}
