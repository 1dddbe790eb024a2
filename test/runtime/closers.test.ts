import { openTogether, type Closers } from '../../runtime/closers';

const opener = (closed: string[], fails?: string) => async (closers: Closers) => {
  for (const name of ['pool', 'feed', 'listener']) {
    closers.add(async () => {
      await Promise.resolve();
      closed.push(name);
      if (name === fails) throw new Error(`${name} does not close`);
    });
  }
  return closers;
};

it('closes in the opposite order, once, however often it is asked', async () => {
  const closed: string[] = [];
  const closers = await openTogether(opener(closed));
  expect(closed).toEqual([]);
  await Promise.all([closers.close(), closers.close()]);
  await closers.close();
  expect(closed).toEqual(['listener', 'feed', 'pool']);
});

it('closes the rest when one does not close, and says which', async () => {
  const closed: string[] = [];
  const closers = await openTogether(opener(closed, 'feed'));
  await expect(closers.close()).rejects.toThrow('feed does not close');
  expect(closed).toEqual(['listener', 'feed', 'pool']);
});

it('closes what is open when something cannot be opened, and throws why', async () => {
  const closed: string[] = [];
  const failing = openTogether(async (closers) => {
    await opener(closed, 'feed')(closers);
    throw new Error('the port is taken');
  });
  await expect(failing).rejects.toThrow('the port is taken');
  expect(closed).toEqual(['listener', 'feed', 'pool']);
});
