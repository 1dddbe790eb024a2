/**
 * Loaded before a process of ours (`NODE_OPTIONS=--require …`): its wall clock is off by CLOCK_SKEW_MS, and steps back by
 * an hour at each SIGUSR2. What does not go by the wall clock (timers, performance.now) is as ever.
 */
const RealDate = Date;
let skewMs = Number(process.env.CLOCK_SKEW_MS ?? 0);
const now = () => RealDate.now() + skewMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
process.on('SIGUSR2', () => {
  skewMs -= 3_600_000;
});
