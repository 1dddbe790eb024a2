/** `npm run test:system`: what kills, freezes, restarts or waits for minutes. `.ci/run` runs it after `npm test`. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.system.ts'],
  // Their timing is what some of them test.
  maxWorkers: 2,
};
