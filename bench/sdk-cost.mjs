import { promiseHooks } from 'node:v8';
import vm from 'node:vm';

/** `node bench/sdk-cost.mjs`: what two habits of Temporal's SDK for TypeScript cost a workflow (docs/sdk-cost.md). Nothing of ours takes part. */
const context = vm.createContext({});
vm.runInContext(
  'globalThis.activator = {}; globalThis.work = () => new Promise((done) => done(1));',
  context,
);
const call = new vm.Script('1');
const promises = new vm.Script('for (let n = 0; n < 100; n += 1) work();');

function cost(what, times, work) {
  for (let n = 0; n < times / 10; n += 1) work();
  const before = process.cpuUsage();
  for (let n = 0; n < times; n += 1) work();
  const { user, system } = process.cpuUsage(before);
  console.log(`${what}: ${((user + system) / times).toFixed(1)} µs of CPU`);
}

cost('a call into a context', 20_000, () => call.runInContext(context));
cost('the same with a timeout', 20_000, () => call.runInContext(context, { timeout: 5_000 }));
cost('100 promises', 200, () => promises.runInContext(context));
// As vm-shared.js does for each promise of a workflow.
const inContext = (of, text) => of.constructor.constructor(text)();
promiseHooks.createHook({
  init(of) {
    if (!inContext(of, 'return globalThis.activator')) return;
    const Failure = inContext(of, 'return globalThis.Error');
    new Failure().stack?.replace(/^Error\n/, '');
  },
  settled: (of) => void inContext(of, 'return globalThis.activator'),
});
cost('100 promises with the hook', 200, () => promises.runInContext(context));
