import { within } from '../../timing/deadline';

const LONG_MS = 3_600_000;
const late = () => new Error('late');
const never = new Promise<never>(() => undefined);

it('returns what the work returns, and throws what it throws', async () => {
  await expect(within(Promise.resolve(7), LONG_MS, late)).resolves.toBe(7);
  await expect(within(Promise.reject(new Error('refused')), LONG_MS, late)).rejects.toThrow('refused');
});

it('throws what `late` makes when time is up', async () => {
  await expect(within(never, 1, late)).rejects.toThrow('late');
});

it('throws the reason of the signal, also when it had been aborted before', async () => {
  const controller = new AbortController();
  const waiting = within(never, LONG_MS, late, controller.signal);
  controller.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  await expect(within(Promise.resolve(7), LONG_MS, late, controller.signal)).rejects.toThrow('stopped');
});

it('ignores a failure that comes after the deadline', async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    let fail: (error: Error) => void = () => undefined;
    const work = new Promise<never>((_resolve, reject) => (fail = reject));
    await expect(within(work, 1, late)).rejects.toThrow('late');
    fail(new Error('too late'));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
