import { FIRST_TURN, type Claim, type ClaimOptions } from '../../db/notifications/claim';
import { startDispatcher } from '../../dispatcher/dispatcher';

const NOTHING: Claim = { claimed: [], waiting: false, contended: false, older: false, turn: FIRST_TURN };

/** Wakes a dispatcher after each claim, as often as told, and lets it be then. @returns which claims looked at every month. */
async function looks({ claims, wakes, older }: { claims: number; wakes: number; older: boolean }) {
  const asked: boolean[] = [];
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  const dispatcher = startDispatcher({
    claim: async ({ everyMonth }: Pick<ClaimOptions, 'everyMonth'>) => {
      asked.push(everyMonth);
      if (asked.length <= wakes) setTimeout(() => dispatcher.wake(), 1);
      if (asked.length === claims) end();
      return { ...NOTHING, older };
    },
    markStarted: async () => undefined,
    giveBack: async () => undefined,
    start: async () => undefined,
    onStarted: () => undefined,
    onError: () => undefined,
    monotonicMs: () => performance.now(),
    // None of these claims comes of the sweep.
    sweepMs: 3_600_000,
    batch: 64,
  });
  await ended;
  await dispatcher.stop();
  return asked;
}

test('every month is looked at by the first claim, and again within a second though nobody wakes the dispatcher', async () => {
  expect(await looks({ claims: 4, wakes: 2, older: false })).toEqual([true, false, false, true]);
});

test('while something of an older month is open, every claim looks', async () => {
  expect(await looks({ claims: 3, wakes: 2, older: true })).toEqual([true, true, true]);
});
