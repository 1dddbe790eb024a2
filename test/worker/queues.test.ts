import { createQueueOwners } from '../../worker/queues';

const QUEUES = Array.from({ length: 2_000 }, (_, nth) => `P${100_000 + nth}/live`);
const seatsOf = (...seats: readonly number[]) => seats.map((seat) => ({ seat, processId: `p${seat}` }));

/** The owner of each queue, by the number of its seat; more than one where they disagree. */
function owners(...seats: readonly number[]): readonly (readonly number[])[] {
  const workers = seats.map((seat) => {
    const made = createQueueOwners(`p${seat}`);
    made.update(seatsOf(...seats));
    return { seat, ...made };
  });
  return QUEUES.map((queue) => workers.filter(({ isMine }) => isMine(queue)).map(({ seat }) => seat));
}

test('each queue has one owner, and each worker its share', () => {
  const found = owners(0, 1, 2, 3);
  expect(found.every((one) => one.length === 1)).toBe(true);
  for (const seat of [0, 1, 2, 3]) {
    const share = found.filter(([owner]) => owner === seat).length / QUEUES.length;
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.3);
  }
});

test('a worker that leaves moves its own queues only, and has them again when it is back', () => {
  const [before, without] = [owners(0, 1, 2, 3), owners(0, 1, 3)];
  for (const [at, [owner]] of before.entries())
    if (owner !== 2) expect(without[at]).toEqual([owner]);
    else expect(without[at]).not.toEqual([2]);
});

test('before it has a seat all queues are its own', () => {
  const { isMine, update } = createQueueOwners('new');
  expect(QUEUES.every(isMine)).toBe(true);
  expect(update(seatsOf(0, 1))).toBe(false);
  expect(QUEUES.every(isMine)).toBe(true);
  const all = [...seatsOf(0, 1), { seat: 2, processId: 'new' }];
  update(all);
  expect(QUEUES.filter(isMine).length).toBeLessThan(QUEUES.length / 2);
});

test('of two workers with one seat the younger one gives way', () => {
  const same = ['p1', 'p2'].map((processId) => ({ processId, seat: 0 }));
  expect(createQueueOwners('p1').update(same)).toBe(false);
  expect(createQueueOwners('p2').update(same)).toBe(true);
});
