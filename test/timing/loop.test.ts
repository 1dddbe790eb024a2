import { startLoop } from '../../timing/loop';

/** Far beyond the test's own time limit: whoever waits for it has failed. */
const NEVER_MS = 3_600_000;

function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open: () => open(), opened };
}

/** A loop whose every round ends when it is told to. */
function scene(outcomes: readonly (() => 'again' | 'done' | void)[]) {
  const rounds = outcomes.map((outcome) => ({ outcome, begun: gate(), end: gate() }));
  const errors: unknown[] = [];
  let begun = 0;
  const loop = startLoop({
    round: async () => {
      const own = rounds[begun];
      begun += 1;
      own?.begun.open();
      await own?.end.opened;
      return own?.outcome();
    },
    everyMs: NEVER_MS,
    onError: (error) => void errors.push(error),
  });
  return { loop, rounds, errors, begun: () => begun };
}

const nothing = () => undefined;

it('begins its first round at once, and the next when it is woken', async () => {
  const { loop, rounds, begun } = scene([nothing, nothing]);
  rounds[0]?.end.open();
  await rounds[0]?.begun.opened;
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun()).toBe(1);
  loop.wake();
  await rounds[1]?.begun.opened;
  rounds[1]?.end.open();
  await loop.stop();
  expect(begun()).toBe(2);
});

it('runs another round when it was woken during one', async () => {
  const { loop, rounds } = scene([nothing, nothing]);
  await rounds[0]?.begun.opened;
  loop.wake();
  rounds[0]?.end.open();
  await rounds[1]?.begun.opened;
  rounds[1]?.end.open();
  await loop.stop();
});

it('does not pause after a round that asks for the next', async () => {
  const { loop, rounds } = scene([() => 'again', nothing]);
  rounds[0]?.end.open();
  await rounds[1]?.begun.opened;
  rounds[1]?.end.open();
  await loop.stop();
});

it('goes on after a round that failed', async () => {
  const fault = new Error('no database');
  const { loop, rounds, errors } = scene([
    () => {
      throw fault;
    },
    nothing,
  ]);
  loop.wake();
  rounds[0]?.end.open();
  await rounds[1]?.begun.opened;
  expect(errors).toEqual([fault]);
  rounds[1]?.end.open();
  await loop.stop();
});

it('begins no round after the one that was the last', async () => {
  const { loop, rounds, begun } = scene([() => 'done', nothing]);
  loop.wake();
  rounds[0]?.end.open();
  rounds[1]?.end.open();
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun()).toBe(1);
  await loop.stop();
});

it('tells the round under way of the stop, and waits for its end', async () => {
  const held = gate();
  const begun = gate();
  let toldToStop = false;
  let ended = false;
  const loop = startLoop({
    round: async (stopped) => {
      begun.open();
      await held.opened;
      toldToStop = stopped();
      ended = true;
      return 'again';
    },
    everyMs: NEVER_MS,
    onError: (error) => {
      throw error;
    },
  });
  await begun.opened;
  const stopping = loop.stop();
  expect(ended).toBe(false);
  held.open();
  await stopping;
  expect([toldToStop, ended]).toEqual([true, true]);
});

it('rests for as long as it is told, although it is woken, and ends the rest when it is stopped', async () => {
  let begun = 0;
  const rested = gate();
  const loop = startLoop({
    round: async () => {
      begun += 1;
    },
    everyMs: 1,
    onError: () => undefined,
    restMs: () => (rested.open(), NEVER_MS),
  });
  await rested.opened;
  loop.wake();
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toBe(1);
  await loop.stop();
  expect(begun).toBe(1);
});
