import { FIRST_TURN, type Claim, type ClaimOptions } from '../../db/notifications/claim';
import { startDispatcher } from '../../dispatcher/dispatcher';

const NOTHING: Claim = { claimed: [], waiting: false, contended: false, older: false, turn: FIRST_TURN };

/** Lets a dispatcher claim at moments of its clock (milliseconds). @returns which claims looked at every month. */
async function looks(atMs: readonly number[], older: boolean): Promise<boolean[]> {
  const asked: boolean[] = [];
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const dispatcher = startDispatcher({
    claim: async ({ everyMonth }: Pick<ClaimOptions, 'everyMonth'>) => {
      asked.push(everyMonth);
      if (asked.length === atMs.length) end();
      return { ...NOTHING, older };
    },
    markStarted: async () => undefined,
    giveBack: async () => undefined,
    start: async () => undefined,
    onStarted: () => undefined,
    onError: () => undefined,
    monotonicMs: () => atMs[asked.length] ?? Number.NaN,
    sweepMs: 5,
    batch: 64,
  });
  await ended;
  await dispatcher.stop();
  return asked.slice(0, atMs.length);
}

test('every month is looked at by the first claim, and by the next one when a second has passed', async () => {
  expect(await looks([0, 1, 999, 1_000, 1_001], false)).toEqual([true, false, false, true, false]);
});

test('while something of an older month is open, every claim looks', async () => {
  expect(await looks([0, 1, 2], true)).toEqual([true, true, true]);
});
