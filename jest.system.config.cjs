/** `npm run test:system`: what kills, freezes, restarts or waits for minutes. `.ci/run` runs it after `npm test`. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.system.ts'],
  // On two cores, and most of them wait: a third of their time is not spent by two.
  maxWorkers: 3,
  testSequencer: '<rootDir>/test/support/longest-first.cjs',
};
