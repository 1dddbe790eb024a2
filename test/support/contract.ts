import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import document from '../../contracts/openapi.json';

interface DocumentedResponse {
  readonly headers: Record<string, { readonly $ref: string }>;
  readonly content: { readonly 'application/json': { readonly schema: object } };
}

type Json = { [name: string]: unknown };

/** The document with every object closed: a field that it does not name fails a test. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Json).map(([name, inner]) => [name, closed(inner)]);
  const copy = Object.fromEntries(entries) as Json;
  return copy['type'] === 'object' && copy['properties'] !== undefined
    ? { ...copy, additionalProperties: false }
    : copy;
}

const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));
ajv.addSchema({ $id: 'openapi', ...(closed(document) as Json) });
const validators = new Map<string, ValidateFunction>();

/**
 * Holds an answer against the OpenAPI document: a documented status, every header it promises, a body of its schema.
 * What has no operation in the document must be the contract's 404 or 400.
 * @throws with every fault found.
 */
export function expectDocumented(
  call: { method: string; path: string },
  answer: { status: number; headers: Json; text: string },
): void {
  const [path = ''] = call.path.split('?');
  const operation = (document.paths as Json)[path] as Json | undefined;
  const responses = (
    operation?.[call.method.toLowerCase()] as { responses?: Record<string, DocumentedResponse> }
  )?.responses;
  if (answer.headers['x-request-id'] === undefined) throw new Error('X-Request-Id is missing');
  if (responses === undefined) {
    if (![400, 404].includes(answer.status)) throw new Error(`${call.method} ${path}: ${answer.status}`);
    return check('#/components/schemas/Error', answer.text);
  }
  const documented = responses[String(answer.status)];
  if (documented === undefined) throw new Error(`status ${answer.status} is not documented`);
  for (const name of Object.keys(documented.headers)) {
    if (answer.headers[name.toLowerCase()] === undefined)
      throw new Error(`${answer.status}: ${name} is missing`);
  }
  check((documented.content['application/json'].schema as { $ref: string }).$ref, answer.text);
}

function check(pointer: string, text: string): void {
  let validate = validators.get(pointer);
  if (validate === undefined)
    validators.set(pointer, (validate = ajv.compile({ $ref: `openapi${pointer}` })));
  if (!validate(JSON.parse(text))) throw new Error(`${pointer}: ${ajv.errorsText(validate.errors)}\n${text}`);
}
