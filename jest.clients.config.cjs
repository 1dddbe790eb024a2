/** `npm run test:clients`: clients that public generators make of the OpenAPI document, compiled and run. `.ci/run` runs it too. */
module.exports = {
  ...require('./jest.config.cjs'),
  testMatch: ['**/*.clients.ts'],
  // Each compiles with all cores.
  maxWorkers: 2,
};
