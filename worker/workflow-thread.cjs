'use strict';
const { Script } = require('node:vm');
const { isMainThread } = require('node:worker_threads');

/**
 * Preloaded by the worker's command line (`node --require`), for the thread that runs workflow code. Temporal's SDK enters a
 * workflow some eleven times for each delivery, each time under a time limit of Node's, which starts and ends a thread: 0.1 to
 * 0.2 ms of CPU where the call itself takes 0.003. The limit guards against code that loops without end. Ours does not: it asks
 * its row, and waits (docs/decisions/deliveries.md). Without this file everything works, and costs more.
 */
if (!isMainThread) {
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its script, below
  const { runInContext } = Script.prototype;
  Script.prototype.runInContext = function (context, { timeout: _, ...options } = {}) {
    return runInContext.call(this, context, options);
  };
}
