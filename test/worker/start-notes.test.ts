import type { Claim, ClaimedNotification } from '../../db/notifications/claim';
import { startDispatcher, type Dispatcher } from '../../worker/dispatcher';
import { createStartNotes } from '../../worker/start-notes';

const one = (notificationId: string): ClaimedNotification => ({
  notificationId,
  generation: 1,
  eventType: 'credit_application.accepted',
  partnerId: 'P100001',
  environment: 'live',
  applicationId: null,
  requestId: null,
  traceParent: null,
  ageMs: 0,
});
const NOTHING: Claim = { claimed: [], waiting: false, contended: false, turn: null };

/** Starts what the first claim brings, each as told, and stops. @returns what was noted as started. */
async function noted(start: (id: string, dispatcher: Dispatcher) => Promise<void>): Promise<string[]> {
  const claims: Claim[] = [{ ...NOTHING, claimed: ['a', 'b', 'c'].map(one) }];
  const ids: string[] = [];
  let begun: () => void = () => undefined;
  const beginning = new Promise<void>((resolve) => (begun = resolve));
  const dispatcher = startDispatcher({
    claim: async () => {
      const claim = claims.shift();
      if (claim === undefined) begun();
      return claim ?? NOTHING;
    },
    markStarted: async (started) => void ids.push(...started.map(({ notificationId }) => notificationId)),
    giveBack: async () => undefined,
    start: async ({ notificationId }) => start(notificationId, dispatcher),
    onStarted: () => undefined,
    onError: () => undefined,
    monotonicMs: () => performance.now(),
    sweepMs: 10,
    batch: 64,
  });
  await beginning;
  await dispatcher.stop();
  return ids;
}

test('what has been attempted before its start is answered is not noted again', async () => {
  const ids = await noted(async (id, dispatcher) => {
    await Promise.resolve();
    if (id === 'b') dispatcher.attemptEnded(id);
  });
  expect(ids).toEqual(['a', 'c']);
});

test('what has been attempted since its start is left out', async () => {
  const written: string[] = [];
  const notes = createStartNotes(
    async (started) => void written.push(...started.map(({ notificationId }) => notificationId)),
    () => undefined,
  );
  notes.expect(['a', 'b'].map(one));
  notes.add(['a', 'b'].map(one));
  notes.leaveOut('a');
  await notes.flush();
  expect(written).toEqual(['b']);
});

test('nothing is written when everything has been attempted', async () => {
  const notes = createStartNotes(
    () => Promise.reject(new Error('written')),
    (error) => {
      throw error;
    },
  );
  notes.expect([one('a')]);
  notes.add([one('a')]);
  notes.leaveOut('a');
  await notes.flush();
});

test('what could not be started is not noted', async () => {
  const ids = await noted(async (id) => {
    if (id === 'a') throw new Error('Temporal is away');
  });
  expect(ids).toEqual(['b', 'c']);
});
