/**
 * Takes a slot of an owner. The function that it resolves to gives it back; a second call does nothing.
 * @throws what `full` makes when none was free in time
 */
export type Slots = (owner: string, full: () => Error) => Promise<() => void>;

/** Gives each owner `most` slots in this process. A call that finds none free waits, in order, for `waitMs` at most. */
export function createSlots(most: number, waitMs: number): Slots {
  const owners = new Map<string, { taken: number; readonly waiting: Set<() => void> }>();

  return async (owner, full) => {
    const own = owners.get(owner) ?? { taken: 0, waiting: new Set() };
    owners.set(owner, own);
    if (own.taken < most) own.taken += 1;
    else await turn(own.waiting, full);
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const [next] = own.waiting;
      if (next !== undefined) return next();
      own.taken -= 1;
      if (own.taken === 0) owners.delete(owner);
    };
  };

  /** Resolves when a slot is passed on to this call. */
  function turn(waiting: Set<() => void>, full: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        clearTimeout(timer);
        waiting.delete(take);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(take);
        reject(full());
      }, waitMs);
      waiting.add(take);
    });
  }
}
