import { readFile } from 'node:fs/promises';
import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  defaultPayloadConverter,
  ensureTemporalFailure,
  TimeoutFailure,
} from '@temporalio/common';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import { failureConverter } from '../../workflows/failure-converter';
import { prebuiltBundle } from '../support/temporal';

const SECRET = 'Jane Doe, 1 High Street';
const LIKE_FRAMES = `oops\n    at ${SECRET} (file:1:1)`;
const statement = (message = SECRET) =>
  new DrizzleQueryError(
    `select '${SECRET}'`,
    [SECRET],
    Object.assign(new Error(message), { name: 'PostgresError', code: 'P0001' }),
  );
const convert = (error: unknown) => failureConverter.errorToFailure(error, defaultPayloadConverter);
type Failure = ReturnType<typeof convert>;
/** What of it is stored; payloads as text. */
const textOf = ({ message, stackTrace, cause, applicationFailureInfo, encodedAttributes }: Failure): string =>
  JSON.stringify([message, stackTrace, applicationFailureInfo, encodedAttributes], (_name, one: unknown) =>
    one instanceof Uint8Array ? Buffer.from(one).toString() : one,
  ) + (cause ? textOf(cause) : '');

it.each([
  ['an error', new Error(LIKE_FRAMES)],
  ['one of a statement', statement()],
  ['one that the SDK has wrapped', ensureTemporalFailure(statement(LIKE_FRAMES))],
  ['a text', SECRET],
  ['an object', { answer: SECRET }],
  [
    'a failure with details',
    ApplicationFailure.create({ type: 'SomeError', message: SECRET, details: [SECRET] }),
  ],
  ['a failure with a type of its own', ApplicationFailure.create({ type: SECRET, message: SECRET })],
  ['the cause of a reason', ApplicationFailure.create({ type: 'gone', message: 'x', cause: statement() })],
  ['the cause of a cancellation', new CancelledFailure('x', [], statement())],
  ['the cause of an activity', new ActivityFailure('x', 'a', '1', 'TIMEOUT', undefined, statement())],
])('%s: nothing of what it holds gets into a history', (_what, error) => {
  const failure = convert(error);
  expect(textOf(failure)).not.toContain('Jane');
  expect(failure.message).not.toBe('');
});

test('an error keeps its class', () => {
  expect(convert(ensureTemporalFailure(new TypeError('x'))).message).toMatch(/^TypeError: /);
  expect(convert(ensureTemporalFailure(new Error('x'))).message).toMatch(/^Error: /);
});

test('a reason of ours keeps its message, and its place', () => {
  const failure = convert(ApplicationFailure.nonRetryable('attempt 11: http_status 500', 'exhausted'));
  expect(failure).toMatchObject({
    message: 'attempt 11: http_status 500',
    applicationFailureInfo: { type: 'exhausted', nonRetryable: true },
    stackTrace: expect.stringMatching(/at .*failure-converter\.test\.ts/),
  });
});

test('that an activity is not registered is told, and no more of it', () => {
  const message = `Activity function sendAttempt is not registered on this Worker, available activities: ["${SECRET}"]`;
  expect(convert(ApplicationFailure.create({ type: 'NotFoundError', message })).message).toBe(
    'NotFoundError: Activity function sendAttempt is not registered on this Worker',
  );
});

test('what Temporal says stays', () => {
  expect(
    convert(new TimeoutFailure('activity StartToClose timeout', undefined, 'START_TO_CLOSE')),
  ).toMatchObject({
    message: 'activity StartToClose timeout',
    timeoutFailureInfo: {},
  });
});

test('what comes out of a history goes back as it was', () => {
  const stored = convert(ApplicationFailure.create({ type: 'fault', message: 'Postgres is away' }));
  expect(convert(failureConverter.failureToError(stored, defaultPayloadConverter))).toBe(stored);
});

test('it is in the bundle of the workflows', async () => {
  expect(await readFile((await prebuiltBundle()).codePath, 'utf8')).toContain("the worker's log says more");
});
