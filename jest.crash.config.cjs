/** `npm run test:crash`: the crash runs in full, about a quarter of an hour; `npm test` has them in small. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.crash.ts'],
  testTimeout: 1_800_000,
  maxWorkers: 1,
};
