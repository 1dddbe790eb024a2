// The facts of an error that may be logged or stored in a workflow's history. They contain nothing that
// a caller, a partner or a database wrote.
interface ErrorFacts {
  readonly type: string;
  readonly message: string;
  /** SQLSTATE, or the code of Node, a driver or gRPC; always text, as a store of logs takes a field as what it is first. */
  readonly code?: string;
  readonly table?: string;
  readonly constraint?: string;
  /** Its frames, without the message that an engine puts before them. */
  readonly stack?: string;
  readonly cause?: ErrorFacts;
}

const NAME = /^[\w$]{1,63}$/;
/** The first line of a stack without a message: `AggregateError [ECONNREFUSED]:`. */
const NO_MESSAGE = /^[\w$]*(?: \[\w+\])?:? *(?:\n|$)/;
const LONGEST_MESSAGE = 300;
const DEEPEST_CAUSE = 5;

// Classes of SQLSTATE whose messages only name relations, roles and states. Those of data, constraints
// and triggers (not here) may contain values.
const SQL_CLASSES_TOLD = /^(?:08|25|28|3D|40|42|53|54|55|57|58)...$/;

/** Codes of the parser, TLS and Node's checks of arguments. Their messages quote the input. */
const CODES_THAT_QUOTE = /^(?:HPE|ERR|CERT)_/;

/** @param thrown anything; causes are followed five deep */
export function errorFacts(thrown: unknown, depth = 0): ErrorFacts {
  if (typeof thrown !== 'object' || thrown === null)
    return { type: typeof thrown, message: 'something that is no error was thrown' };
  const error = thrown as Readonly<Record<string, unknown>>;
  const code = codeOf(error['code']);
  const [table, constraint] = [nameOf(error['table_name']), nameOf(error['constraint_name'])];
  const stack = framesOf(error);
  const cause =
    error['cause'] ?? (Array.isArray(error['errors']) ? (error['errors'][0] as unknown) : undefined);
  return {
    type: typeOf(error),
    message: messageOf(error, code ?? ''),
    ...(code !== undefined && { code }),
    ...(table !== undefined && { table }),
    ...(constraint !== undefined && { constraint }),
    ...(stack !== '' && { stack }),
    ...(cause !== undefined &&
      cause !== null &&
      depth < DEEPEST_CAUSE && { cause: errorFacts(cause, depth + 1) }),
  };
}

/** `PostgresError (23505 delivery_attempts)`: an error by its names, without its message. */
export function nameError({ type, code, table, constraint }: ErrorFacts): string {
  const about = [code, table, constraint].filter((word) => word !== undefined).join(' ');
  return about === '' ? type : `${type} (${about})`;
}

export function plainText(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ');
  return plain.length > LONGEST_MESSAGE ? `${plain.slice(0, LONGEST_MESSAGE)}…` : plain;
}

/** The frames of a stack, which must begin with its message, as a message may have lines that look alike. */
export function framesOf(error: { readonly message?: unknown; readonly stack?: unknown }): string {
  const { message, stack } = error;
  if (typeof stack !== 'string') return '';
  const head = typeof message === 'string' ? message : '';
  const at = stack.indexOf(head);
  if (at === -1 || (head === '' && !NO_MESSAGE.test(stack))) return '';
  return stack
    .slice(at + head.length)
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');
}

function typeOf(error: Readonly<Record<string, unknown>>): string {
  const given = nameOf(error['name']);
  if (given !== undefined && given !== 'Error') return given;
  return nameOf((error['constructor'] as { name?: unknown } | undefined)?.name) ?? 'Error';
}

function messageOf(error: Readonly<Record<string, unknown>>, code: string): string {
  // drizzle's message is the statement and its parameters.
  if ('query' in error && 'params' in error) return 'a statement failed';
  if (typeOf(error) === 'PostgresError' && !SQL_CLASSES_TOLD.test(code)) return 'refused by Postgres';
  // It is mostly about JSON, which the message quotes.
  if (typeOf(error) === 'SyntaxError') return 'a text is not in its form';
  if (CODES_THAT_QUOTE.test(code)) return code;
  return plainText(typeof error['message'] === 'string' ? error['message'] : '');
}

function codeOf(code: unknown): string | undefined {
  return typeof code === 'number' ? String(code) : nameOf(code);
}

function nameOf(name: unknown): string | undefined {
  return typeof name === 'string' && NAME.test(name) ? name : undefined;
}
