/** `npm run test:crash`: the crash runs in full, and a way out that is cut, about 30 minutes; `npm test` has the kills in small. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.crash.ts'],
  testTimeout: 1_800_000,
  maxWorkers: 1,
};
