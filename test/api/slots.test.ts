import { createSlots } from '../../api/slots';

const full = () => new Error('full');

test('an owner has its slots, others have theirs, and those that wait take their turn', async () => {
  const slots = createSlots(2, 60_000);
  const [first, second] = [await slots('a', full), await slots('a', full)];
  const order: string[] = [];
  const third = slots('a', full).then((release) => (order.push('third'), release));
  const fourth = slots('a', full).then((release) => (order.push('fourth'), release));
  (await slots('b', full))();
  expect(order).toEqual([]);
  first();
  // Given back twice, it is still one slot.
  first();
  await third;
  expect(order).toEqual(['third']);
  second();
  (await fourth)();
  (await third)();
  (await slots('a', full))();
});

test('a call that waits too long fails, and takes no slot later', async () => {
  const slots = createSlots(1, 50);
  const release = await slots('a', full);
  await expect(slots('a', full)).rejects.toThrow('full');
  release();
  (await slots('a', full))();
});
