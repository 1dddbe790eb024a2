/** `npm run test:system`: what kills, freezes, restarts or waits for minutes. `.ci/run` runs it after `npm test`. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.system.ts'],
  // Their timing is what some of them test, and the cluster keeps two cores busy.
  maxWorkers: 2,
  testSequencer: '<rootDir>/test/support/longest-first.cjs',
};
