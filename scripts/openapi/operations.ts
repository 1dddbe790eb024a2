import { z } from 'zod';
import { methodAndPath, type Operation } from '../../api/operation';
import { refusal, type AnyErrorCode, type Refusal } from '../../contracts/errors';
import { ID_PATTERNS } from '../../contracts/fields';
import { BODY_NOT_EMPTY, queryValidator, type Validated } from '../../contracts/validate';
import { content, requestIdRefs } from './parts';
import { componentSchemas, keepExamples, portable, type Json } from './portable';

type AnyOperation = Operation<never>;

export interface Listener {
  readonly operations: readonly AnyOperation[];
  /** Its closed list of codes. */
  readonly refusals: Readonly<Partial<Record<AnyErrorCode, Kind>>>;
  readonly errorSchema: z.ZodType;
  /** The name of its scheme of keys. */
  readonly security: string;
  /** Headers of an answer; `codes`: none for a success. */
  readonly headers: (status: number, codes: readonly AnyErrorCode[]) => Json;
}

interface Kind {
  readonly status: number;
  readonly when: string;
  readonly example: readonly unknown[] | null;
}

export const pathsOf = (listener: Listener): Json =>
  Object.fromEntries(
    listener.operations.map((one) => {
      const [method, path] = methodAndPath(one);
      return [path, { [method.toLowerCase()]: operationOf(one, listener) }];
    }),
  );

function operationOf(one: AnyOperation, listener: Listener): Json {
  const { tag, id: operationId, summary, description, query, body } = one;
  const answers = Object.entries(one.answers).map(([status, [what, schema, examples]]) => {
    const headers = listener.headers(Number(status), []);
    return [status, { description: what, headers, content: content([schema], examples) }] as const;
  });
  return {
    tags: [tag],
    security: [{ [listener.security]: [] }],
    operationId,
    summary,
    description,
    parameters: [
      ...(query instanceof z.ZodObject ? queryParameters(query) : []),
      ...pathParameters(one),
      ...requestIdRefs,
    ],
    ...(body && {
      requestBody: {
        required: true,
        description: 'At most 16 KiB. Compressed bodies are not read.',
        content: content(body.schemas, body.examples),
      },
    }),
    responses: { ...Object.fromEntries(answers), ...refusalsOf(one, listener) },
  };
}

function queryParameters(schema: z.ZodObject): Json[] {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'input', override: keepExamples }) as {
    properties?: Record<string, Json>;
  };
  return Object.entries(properties).map(([name, { description, ...own }]) => ({
    name,
    in: 'query',
    description,
    schema: portable(own, 'input'),
  }));
}

const pathParameters = ({ call }: AnyOperation): Json[] =>
  [...call.matchAll(/\{((\w+)_id)\}/g)].map(([, name = '', noun = '']) => ({
    name,
    in: 'path',
    required: true,
    description: `The ${noun.replace('credit_', '')}.`,
    schema: { type: 'string', pattern: `^${ID_PATTERNS[name as keyof typeof ID_PATTERNS]}$` },
  }));

interface WrongRequest {
  /** Neither: as the call wants it. */
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: object;
  readonly refused: Refusal;
}

/** Requests that break the contract of a call, with their answers: a parameter that it does not know, or a body where none belongs, unless it names others. */
export function wrongRequests({ call, query, body, wrong }: AnyOperation): WrongRequest[] {
  if (body !== undefined)
    return (wrong ?? []).map((fields) => {
      const sent = { ...(Object.values(body.examples)[0]?.value as object), ...fields };
      return { body: sent, refused: refusedBy(body.read, sent) };
    });
  if (query === 'ignored') return [];
  if (wrong === undefined && call.startsWith('POST')) return [{ body: {}, refused: BODY_NOT_EMPTY }];
  const read = queryValidator(query ?? z.strictObject({}));
  return (wrong ?? [{ verbose: '1' }]).map((sent) => ({ query: sent, refused: refusedBy(read, sent) }));
}

function refusedBy(read: (sent: unknown) => Validated<unknown>, sent: object): Refusal {
  const result = read(sent);
  if ('violation' in result) return result.violation;
  throw new Error(`This request breaks no rule: ${JSON.stringify(sent)}`);
}

const EVERY_CALL = [
  'INVALID_REQUEST',
  'UNAUTHENTICATED',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_SERVER_ERROR',
] as const;

/** How a call can be refused, by status. */
function refusalsOf(one: AnyOperation, { refusals, errorSchema, headers }: Listener): Json {
  const shown = new Map(wrongRequests(one).map(({ refused }) => [refused.error.code, refused]));
  const codes = [...new Set([...EVERY_CALL, ...shown.keys(), ...(one.codes ?? []), 'NOT_FOUND' as const])];
  const kindOf = (code: AnyErrorCode): Kind => {
    const found = refusals[code];
    if (found === undefined) throw new Error(`${one.id}: ${code} is no code of its document`);
    return found;
  };
  const exampleOf = (code: AnyErrorCode): readonly [AnyErrorCode, Json][] => {
    const { example } = kindOf(code);
    const made = shown.get(code) ?? (example && refusal(code, ...(example as never)));
    return made ? [[code, { value: { success: false, error: made.error } }]] : [];
  };
  const response = (status: number): Json => {
    const own = codes.filter((code) => kindOf(code).status === status);
    const examples = own.flatMap(exampleOf);
    return {
      description: own.map((code) => `\`${code}\`: ${kindOf(code).when}.`).join(' '),
      headers: headers(status, own),
      content: content([errorSchema], examples.length > 0 ? Object.fromEntries(examples) : undefined),
    };
  };
  const statuses = new Set(codes.map((code) => kindOf(code).status));
  return Object.fromEntries([...statuses].map((status) => [status, response(status)]));
}

/** The schemas that the calls of a listener use. */
export const schemasOf = ({ operations, errorSchema }: Listener): Json =>
  componentSchemas([
    ...operations.flatMap(({ body, answers }) => [
      ...(body?.schemas ?? []).map((schema) => [schema, 'input'] as const),
      ...Object.values(answers).map(([, schema]) => [schema, 'output'] as const),
    ]),
    [errorSchema, 'output'],
  ]);
