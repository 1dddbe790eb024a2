import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import internalDocument from '../../contracts/internal-openapi.json';
import publicDocument from '../../contracts/openapi.json';
import { methodAndPath, type Operation } from '../../api/operation';
import { ID_PATTERNS } from '../../contracts/fields';

/** Method and path of a call, with ids of nothing that exists. */
export function exampleCall(one: Operation<never>): ['GET' | 'POST', string] {
  const [method, path] = methodAndPath(one);
  const id = (_: string, name: keyof typeof ID_PATTERNS) =>
    `${ID_PATTERNS[name].slice(0, 4)}${'0'.repeat(26)}`;
  return [method, path.replace(/\{(\w+)\}/, id)];
}

interface DocumentedResponse {
  readonly headers: Record<string, { readonly $ref: string }>;
  readonly content: { readonly 'application/json': { readonly schema: object } };
}

type Json = { [name: string]: unknown };

/**
 * For JSON.parse: the document as our own answers must fit it. A field that it does not name, or a value that it does not know, fails a
 * test; clients accept both.
 */
const closed = (_name: string, value: Json | null) => {
  if (value?.['type'] === 'object' && value['properties'] !== undefined)
    return { ...value, additionalProperties: false };
  const known = value?.['x-extensible-enum'] as unknown[] | undefined;
  return known === undefined ? value : { ...value, enum: [...known, null] };
};

export interface Call {
  readonly method: string;
  readonly path: string;
}

export interface AnswerOnWire {
  readonly status: number;
  readonly headers: Json;
  readonly text: string;
}

/**
 * Holds an answer against an OpenAPI document: a documented status, every header it promises, a body of its schema.
 * What has no operation in the document must be the contract's 404 or 400.
 * @throws with every fault found.
 */
function contractOf(document: { readonly paths: object }): (call: Call, answer: AnswerOnWire) => void {
  const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true, validateSchema: false }));
  ajv.addSchema({ $id: 'openapi', ...(JSON.parse(JSON.stringify(document), closed) as Json) });
  const validators = new Map<string, ValidateFunction>();
  const operations = Object.entries(document.paths).map(([path, operation]) => ({
    path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    operation: operation as Json,
  }));

  function check(pointer: string, text: string): void {
    let validate = validators.get(pointer);
    if (validate === undefined)
      validators.set(pointer, (validate = ajv.compile({ $ref: `openapi${pointer}` })));
    if (!validate(JSON.parse(text)))
      throw new Error(`${pointer}: ${ajv.errorsText(validate.errors)}\n${text}`);
  }

  return (call, answer) => {
    const [path = ''] = call.path.split('?');
    const method = call.method.toLowerCase();
    // A path with an id in it also matches those that are all words.
    const operation = operations.find((one) => one.path.test(path) && one.operation[method] !== undefined)
      ?.operation[method];
    const { responses } = (operation ?? {}) as { responses?: Record<string, DocumentedResponse> };
    if (answer.headers['x-request-id'] === undefined) throw new Error('X-Request-Id is missing');
    if (responses === undefined) {
      if (![400, 404].includes(answer.status)) throw new Error(`${call.method} ${path}: ${answer.status}`);
      return check('#/components/schemas/ErrorResponse', answer.text);
    }
    const documented = responses[String(answer.status)];
    if (documented === undefined) throw new Error(`status ${answer.status} is not documented`);
    for (const name of Object.keys(documented.headers)) {
      if (answer.headers[name.toLowerCase()] === undefined)
        throw new Error(`${answer.status}: ${name} is missing`);
    }
    check((documented.content['application/json'].schema as { $ref: string }).$ref, answer.text);
  };
}

export const expectDocumented = contractOf(publicDocument);
export const expectDocumentedInternally = contractOf(internalDocument);
