import { DrizzleQueryError } from 'drizzle-orm/errors';
import { errorFacts, nameError } from '../../domain/error-facts';

const SECRET = 'Jane Doe, 1 High Street';
/** As a partner might answer, so that a message looks like frames. */
const FRAMES = `oops\n    at ${SECRET} (file:1:1)\n    at Object.<anonymous> (${SECRET}:1:1)`;

const postgres = (code: string, message: string) =>
  Object.assign(new Error(message), {
    name: 'PostgresError',
    severity: 'ERROR',
    code,
    detail: `Key (answer)=(${SECRET}) exists`,
    where: SECRET,
    hint: SECRET,
    table_name: 'delivery_attempts',
    constraint_name: 'delivery_attempts_pkey',
    parameters: [SECRET],
    query: `select '${SECRET}'`,
  });

it.each([
  ['a statement', new DrizzleQueryError(`select '${SECRET}'`, [SECRET], postgres('22P02', SECRET))],
  ['one with lines like frames', new DrizzleQueryError('select $1', [FRAMES])],
  ['a trigger', postgres('P0001', `not ${SECRET}`)],
  ['data of the wrong form', postgres('22P02', `invalid input syntax for type json: "${SECRET}"`)],
  ['a constraint', postgres('23514', `violated by ${SECRET}`)],
  ['a parser of JSON', parsed(`{"a": ${SECRET}}`)],
  ['a parser of HTTP', coded('HPE_INVALID', { rawPacket: SECRET })],
  ['a certificate', coded('ERR_TLS_CERT_ALTNAME_INVALID', { cert: SECRET })],
  ['an argument', coded('ERR_INVALID_ARG_VALUE')],
  ['a text that was thrown', SECRET],
  ['an object that was thrown', { answer: SECRET, code: SECRET, name: SECRET, table_name: SECRET }],
  ['several errors', new AggregateError([postgres('P0001', SECRET)])],
  ['a message that was taken away', Object.assign(new Error(FRAMES), { message: '' })],
  ['a stack of another message', Object.assign(new Error('x'), { stack: FRAMES, message: 'y' })],
])('%s: nothing of what it holds is told', (_what, thrown) => {
  expect(JSON.stringify(errorFacts(thrown))).not.toContain('Jane');
});

test('what an operator needs is told: class, SQLSTATE, table, constraint, where', () => {
  const facts = errorFacts(new DrizzleQueryError('select 1', ['x'], postgres('23505', 'duplicate key')));
  expect(facts).toMatchObject({
    type: 'DrizzleQueryError',
    message: 'a statement failed',
    stack: expect.stringMatching(/^ {4}at .*error-facts\.test\.ts/),
    cause: {
      type: 'PostgresError',
      message: 'refused by Postgres',
      code: '23505',
      table: 'delivery_attempts',
      constraint: 'delivery_attempts_pkey',
    },
  });
  expect(nameError(facts)).toBe('DrizzleQueryError');
  expect(facts.cause && nameError(facts.cause)).toBe(
    'PostgresError (23505 delivery_attempts delivery_attempts_pkey)',
  );
});

it.each([
  ['42P01', 'relation "quotes" does not exist'],
  ['53100', 'could not extend file: No space left on device'],
  ['57P01', 'terminating connection due to administrator command'],
  ['40P01', 'deadlock detected'],
])('Postgres, %s: its message holds no values and is told', (code, message) => {
  expect(errorFacts(postgres(code, message)).message).toBe(message);
});

test('the message of a system error is told, without what steers a terminal, and cut', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
  expect(errorFacts(refused)).toMatchObject({ message: refused.message, code: 'ECONNREFUSED' });
  const steering = errorFacts(new Error('a\u001B[31mb\u009Bc\u2028d\n\ne'));
  expect(steering.message).toBe('a [31mb c d e');
  expect(errorFacts(new Error('x'.repeat(5_000))).message.length).toBeLessThan(400);
});

test('a code is text, also that of gRPC: a store of logs refuses ECONNREFUSED where the first code of a day was the number 14', () => {
  const away = Object.assign(new Error('14 UNAVAILABLE'), { code: 14 });
  expect(errorFacts(new Error('Temporal', { cause: away }))).toMatchObject({ cause: { code: '14' } });
});

test('causes that go round end', () => {
  const round = new Error('round');
  round.cause = round;
  expect(JSON.stringify(errorFacts(round)).match(/"type"/g)).toHaveLength(6);
});

function coded(code: string, more: object = {}): Error {
  return Object.assign(new Error(`about ${SECRET}`), { code, ...more });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}
