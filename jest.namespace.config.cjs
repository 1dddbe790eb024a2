/** What changes the network around it: `test/faults/network-cut.crash.ts` runs it in a network namespace of its own. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.namespace.ts'],
  maxWorkers: 1,
};
